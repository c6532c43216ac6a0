"""Chooses next tokens from logits. Knows sequences' sampling settings, not the model.

Draws are inverse transform samples of one uniform number per token from the sequence's own
generator, so a seed gives the same draws whatever else is in the batch. What was cached may change
logits by rounding: in float32 that hardly ever makes another text, in fixed point (precision
"high") now and then. Tokens that a grammar leaves no choice of take a number too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from prefix_layer.messages import TokenLogprob
from prefix_layer.sequence import Sequence

LOWEST_LOGPROB = -9999.0
_HEAD = 256
NO_MASKS: Mapping[Sequence, Tensor] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Choice:
    """The token chosen for one sequence; ``logprob`` only when asked for."""

    token_id: int
    logprob: TokenLogprob | None = None


def sample(
    sequences: list[Sequence], logits: Tensor, masks: Mapping[Sequence, Tensor] = NO_MASKS
) -> list[Choice | None]:
    """Choose a token per row of ``logits`` (num_sequences, vocab_size).

    ``masks`` says of a sequence which tokens may come, bool (vocab_size,). A row that holds NaN, or
    only -inf where a token may come, gives None: there is nothing to choose from.
    """
    logits = logits.float()
    best = logits.max(dim=-1)
    usable = torch.isfinite(best.values).tolist()
    greedy_ids = best.indices.tolist()
    return [
        _choose(sequence, row, greedy_id, masks.get(sequence)) if row_usable else None
        for sequence, row, greedy_id, row_usable in zip(
            sequences, logits, greedy_ids, usable, strict=True
        )
    ]


def _choose(
    sequence: Sequence, raw: Tensor, greedy_id: int, allowed: Tensor | None
) -> Choice | None:
    sampling = sequence.sampling
    adjusted = _adjust(sequence, raw)
    if allowed is not None:
        adjusted = adjusted.masked_fill(~allowed.to(raw.device), -torch.inf)
        if not torch.isfinite(adjusted.max()):
            return None
    if sampling.temperature > 0:
        token_id = _draw(sequence, adjusted)
    else:
        token_id = greedy_id if adjusted is raw else int(adjusted.argmax())
    if sampling.num_logprobs is None:
        return Choice(token_id)
    return Choice(token_id, _logprob(raw, token_id, sampling.num_logprobs))


def _adjust(sequence: Sequence, raw: Tensor) -> Tensor:
    """Return logits after penalties and bias; ``raw`` itself when there are none."""
    sampling = sequence.sampling
    offsets = dict(sampling.logit_bias)
    if sampling.presence_penalty or sampling.frequency_penalty:
        for token_id, count in sequence.generated_counts.items():
            penalty = sampling.presence_penalty + count * sampling.frequency_penalty
            offsets[token_id] = offsets.get(token_id, 0.0) - penalty
    if not offsets:
        return raw
    index = torch.tensor(list(offsets), device=raw.device)
    values = torch.tensor(list(offsets.values()), device=raw.device, dtype=raw.dtype)
    return raw.index_add(0, index, values)


def _draw(sequence: Sequence, logits: Tensor) -> int:
    sampling = sequence.sampling
    uniform = sequence.draw().to(logits.device)
    # The highest logit becomes 0 before the division, so a tiny temperature can't overflow.
    probs = torch.softmax((logits - logits.max()).double() / sampling.temperature, dim=-1)
    if not sampling.top_k and sampling.top_p >= 1:
        return _invert(probs, uniform)
    probs, token_ids = _likeliest(probs, sampling.top_k, sampling.top_p)
    mass = sampling.top_p
    if sampling.top_k:
        probs = probs[: sampling.top_k]
        mass *= float(probs.sum())
    if sampling.top_p < 1:
        probs = probs[: max(int((probs.cumsum(0) - probs < mass).sum()), 1)]
    return int(token_ids[_invert(probs, uniform)])


def _likeliest(probs: Tensor, top_k: int, top_p: float) -> tuple[Tensor, Tensor]:
    """Return as many tokens as the filters can leave, or more, likeliest first, and their ids.

    Source: our measurement, 49,152 tokens: sorting all takes 52 ms, the best 256 0.1 ms.
    """
    if top_k <= _HEAD < len(probs):
        head = probs.topk(_HEAD)
        if top_k or float(head.values.sum()) > top_p:
            return head.values, head.indices
    ordered = probs.sort(descending=True, stable=True)
    return ordered.values, ordered.indices


def _invert(probs: Tensor, uniform: Tensor) -> int:
    """Return the first index whose cumulative probability exceeds ``uniform`` of the total."""
    cumulative = probs.cumsum(0)
    index = int(torch.searchsorted(cumulative, uniform * cumulative[-1], right=True))
    return min(index, int((probs > 0).nonzero()[-1]))


def _logprob(raw: Tensor, token_id: int, num_top: int) -> TokenLogprob:
    logprobs = torch.log_softmax(raw, dim=-1).nan_to_num(nan=LOWEST_LOGPROB, neginf=LOWEST_LOGPROB)
    logprobs = logprobs.clamp(min=LOWEST_LOGPROB, max=0.0)
    top = logprobs.topk(min(num_top, len(logprobs)))
    pairs = list(zip(top.indices.tolist(), top.values.tolist(), strict=True))
    return TokenLogprob(token_id=token_id, logprob=float(logprobs[token_id]), top=pairs)
