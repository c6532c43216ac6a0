"""Log-probabilities of a prompt's own tokens, gathered chunk by chunk. Knows no model.

They need the logits of every row, so a sequence that asks for them starts from no cached block;
what it computes is shared as usual.
"""

import torch
from torch import Tensor

from prefix_layer.messages import TokenLogprob
from prefix_layer.sampler import LOWEST_LOGPROB
from prefix_layer.sequence import Sequence

ROWS_AT_ONCE = 64  # bounds the copy of the logits


def take(sequence: Sequence, logits: Tensor) -> None:
    """Add what the rows of a computed chunk say of the tokens behind them.

    ``logits`` (num_rows, vocab_size) belong to the positions behind those computed before. The
    first token of a prompt follows nothing and has no entry.
    """
    first = sequence.num_computed_tokens
    if first == 0:
        sequence.prompt_logprobs.clear()  # started anew after a preemption
    num_rows = min(len(logits), sequence.num_prompt_tokens - 1 - first)
    for start in range(0, num_rows, ROWS_AT_ONCE):
        rows = logits[start : min(start + ROWS_AT_ONCE, num_rows)]
        following = sequence.token_ids[first + start + 1 : first + start + 1 + len(rows)]
        sequence.prompt_logprobs += _entries(rows, following, sequence.num_prompt_top)


def _entries(logits: Tensor, token_ids: list[int], num_top: int) -> list[TokenLogprob]:
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    logprobs = logprobs.nan_to_num(nan=LOWEST_LOGPROB, neginf=LOWEST_LOGPROB)
    logprobs = logprobs.clamp(min=LOWEST_LOGPROB, max=0.0)
    index = torch.tensor(token_ids, device=logits.device)[:, None]
    chosen = logprobs.gather(1, index)[:, 0].tolist()
    top = logprobs.topk(min(num_top, logprobs.shape[1]), dim=-1)
    return [
        TokenLogprob(token_id, logprob, list(zip(ids, values, strict=True)))
        for token_id, logprob, ids, values in zip(
            token_ids, chosen, top.indices.tolist(), top.values.tolist(), strict=True
        )
    ]
