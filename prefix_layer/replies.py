"""What the engine says to the owner of a sequence. Knows no model and no queues."""

from prefix_layer.errors import FailureCode
from prefix_layer.messages import Failed, FinishReason, Sampling, TokenLogprob, Tokens
from prefix_layer.sequence import Sequence


def tokens_of(
    sequence: Sequence, logprob: TokenLogprob | None, finish_reason: FinishReason | None
) -> Tokens:
    """Return what a sequence has got since it was last told; ``logprob`` is the first one's."""
    return Tokens(
        request_id=sequence.request_id,
        token_ids=sequence.take_unsent(),
        logprobs=None if logprob is None else [logprob],
        finish_reason=finish_reason,
        num_cached_tokens=sequence.num_cached_tokens or 0,
        prompt_logprobs=sequence.first_prompt_logprobs,
        waited_s=sequence.waited_s,
    )


def no_choice(sequence: Sequence) -> Failed:
    """Say why no next token could be chosen."""
    if sequence.matcher is not None and sequence.matcher.fault is not None:
        return failed(sequence.request_id, "bad_grammar", sequence.matcher.fault)
    return failed(sequence.request_id, "engine_error", "the model gave no finite logits")


def failed(request_id: str, code: FailureCode, message: str) -> Failed:
    """Return the end of a sequence that gives no answer."""
    return Failed(request_id=request_id, message=message, code=code)


def sampling_fault(sampling: Sampling, vocabulary: range) -> str | None:
    """Say what is wrong with the settings of a request; None for nothing."""
    if any(token_id not in vocabulary for token_id in sampling.logit_bias):
        return f"logit_bias has token ids outside of 0..{vocabulary[-1]}"
    if sampling.grammar is not None and not sampling.stop_token_ids:
        return "a grammar needs stop_token_ids for the answer to end on"
    return "max_tokens must be at least 1" if sampling.max_tokens < 1 else None
