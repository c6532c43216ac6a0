"""Attention over KV that lies in runs of slots, for any model with transformers' interface.

Source: transformers AttentionInterface; the merge of partial attentions by their log-sum-exp is
Rabe & Staats, Self-attention does not need O(n²) memory, 2021, and Dao, FlashAttention-2, 2023.

Shapes: query (1, num_heads, rows, head_dim), key and value (1, num_kv_heads, slots, head_dim).
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface

ATTENTION_NAME = "strata_paged"
_MAX_RUNS = 4


@dataclass(frozen=True, slots=True)
class AttentionOptions:
    """What a layer asks of its attention beyond the plain formula.

    ``window`` is how many positions a row sees, itself included. ``softcap`` c turns scores s into
    c·tanh(s/c). ``sinks`` (num_heads,) are scores that take part in the softmax and have no value.
    """

    scaling: float | None = None
    window: int | None = None
    softcap: float | None = None
    sinks: Tensor | None = None


@dataclass(slots=True)
class Span:
    """Consecutive rows of a batch that belong to one sequence.

    Row ``first_row`` has position ``start``; the KV of positions 0..``end`` lies, in order, in
    ``runs`` of slots ``(first, last)``, last excluded.
    """

    first_row: int
    last_row: int
    start: int
    runs: list[tuple[int, int]]
    masks: dict[tuple[int, int | None], Tensor | None] = field(default_factory=dict)
    gathered: dict[int, Tensor] = field(default_factory=dict)
    run_tensors: list[Tensor] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        """Rows of this sequence in the batch."""
        return self.last_row - self.first_row

    @property
    def end(self) -> int:
        """Position after the last row's."""
        return self.start + self.num_rows

    @property
    def run_tensor(self) -> Tensor:
        """The runs as a tensor (num_runs, 2), made once."""
        if not self.run_tensors:
            self.run_tensors.append(torch.tensor(self.runs))
        return self.run_tensors[0]

    def runs_between(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut the runs to positions ``first`` to ``last``, last excluded."""
        cut, position = [], 0
        for begin, end in self.runs:
            low, high = max(first - position, 0), min(last - position, end - begin)
            if low < high:
                cut.append((begin + low, begin + high))
            position += end - begin
        return cut

    def mask(self, first: int, window: int | None, device: torch.device) -> Tensor | None:
        """Say which of the positions from ``first`` each row sees; None when all see all."""
        if (first, window) not in self.masks:
            self.masks[first, window] = self._make_mask(first, window, device)
        return self.masks[first, window]

    def slots_from(self, first: int, device: torch.device) -> Tensor:
        """List the slots of all positions from ``first``."""
        if first not in self.gathered:
            self.gathered[first] = slots_of(self.runs_between(first, self.end), device)
        return self.gathered[first]

    def _make_mask(self, first: int, window: int | None, device: torch.device) -> Tensor | None:
        if self.num_rows == 1 and (window is None or self.end - first <= window):
            return None
        rows = torch.arange(self.start, self.end, device=device)[:, None]
        positions = torch.arange(first, self.end, device=device)[None, :]
        seen = positions <= rows
        return seen if window is None else seen & (positions > rows - window)


@dataclass(frozen=True, slots=True)
class SingleRows:
    """What the kernel needs to attend with spans of one row: see `NarrowKernel.attend`."""

    rows: list[int]
    runs: Tensor
    bounds: Tensor


def single_rows(spans: list[Span], window: int | None = None) -> SingleRows:
    """List what the last row of each span sees."""
    runs: list[tuple[int, int]] = []
    bounds = [0]
    for span in spans:
        runs += span.runs_between(max(span.end - window, 0) if window else 0, span.end)
        bounds.append(len(runs))
    return SingleRows(
        [span.last_row - 1 for span in spans], torch.tensor(runs), torch.tensor(bounds)
    )


def slots_of(runs: list[tuple[int, int]], device: torch.device) -> Tensor:
    """List all slots of runs as an index tensor."""
    return torch.cat([torch.arange(begin, end) for begin, end in runs]).to(device)


def attend(
    query: Tensor,
    new: tuple[Tensor, Tensor],
    pool: tuple[Tensor, Tensor],
    span: Span,
    options: AttentionOptions,
) -> Tensor:
    """Attend with the rows of one span; their own KV is both ``new`` and already in ``pool``.

    ``pool`` holds one layer's keys and values, (num_slots, num_kv_heads, head_dim). Returns
    (1, num_heads, rows, value_dim).
    """
    window = options.window
    needs_mask = span.num_rows > 1 and window is not None and span.end > window
    same_width = pool[0].shape[-1] == pool[1].shape[-1]
    if query.device.type != "cpu" or needs_mask or options.softcap or not same_width:
        return _attend_gathered(query, pool, span, options)
    return _attend_runs(query, new, pool, span, options)


def _attend_runs(
    query: Tensor,
    new: tuple[Tensor, Tensor],
    pool: tuple[Tensor, Tensor],
    span: Span,
    options: AttentionOptions,
) -> Tensor:
    """Attend run by run without moving KV, and merge; rows see each other causally."""
    alone = span.num_rows == 1
    first = max(span.end - options.window, 0) if alone and options.window else 0
    last = span.end if alone else span.start
    partial = [
        _flash(query, key, value, options) for key, value in _pieces(pool, span, first, last)
    ]
    if not alone:
        partial.append(_flash(query, *new, options, causal=True))
    return _merge(partial, options.sinks, query.dtype)


def _pieces(
    pool: tuple[Tensor, Tensor], span: Span, first: int, last: int
) -> list[tuple[Tensor, Tensor]]:
    """Return keys and values of positions ``first`` to ``last``, a view per run if they are few."""
    runs = span.runs_between(first, last)
    if len(runs) <= _MAX_RUNS:
        return [(_heads_first(pool[0][a:b]), _heads_first(pool[1][a:b])) for a, b in runs]
    slots = span.slots_from(first, pool[0].device)[: last - first]
    return [(_heads_first(pool[0][slots]), _heads_first(pool[1][slots]))]


def _heads_first(slots: Tensor) -> Tensor:
    return slots.transpose(0, 1)[None]


def _flash(
    query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions, *, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Return attention and its log-sum-exp (1, num_heads, rows); K/V heads are not expanded."""
    result: tuple[Tensor, Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(  # noqa: SLF001
        query, key, value, 0.0, causal, scale=options.scaling
    )
    return result


def _merge(
    partial: list[tuple[Tensor, Tensor]], sinks: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Weigh partial attentions by their share of the whole softmax."""
    if len(partial) == 1 and sinks is None:
        return partial[0][0]
    sums = [log_sum for _, log_sum in partial]
    if sinks is not None:
        sums.append(sinks.float().view(1, -1, 1).expand_as(sums[0]))
    weights = torch.softmax(torch.stack(sums), dim=0)[..., None]
    merged = weights[0] * partial[0][0]
    for i in range(1, len(partial)):
        merged = torch.addcmul(merged, weights[i], partial[i][0].to(merged.dtype))
    return merged.to(dtype)


def _attend_gathered(
    query: Tensor, pool: tuple[Tensor, Tensor], span: Span, options: AttentionOptions
) -> Tensor:
    """Attend over copies of the KV with an explicit mask: right for every option and device."""
    window = options.window
    first = max(span.start - window + 1, 0) if window else 0
    slots = span.slots_from(first, query.device)
    key, value = _heads_first(pool[0][slots]), _heads_first(pool[1][slots])
    return _attend_masked(query, key, value, span.mask(first, window, query.device), options)


def attend_expanded(
    query: Tensor, key: Tensor, value: Tensor, span: Span, options: AttentionOptions
) -> Tensor:
    """Attend with the rows of one span over KV that the model made of cached latents.

    ``key`` and ``value`` hold all positions of the span, 0 to ``end``.
    """
    mask = span.mask(0, options.window, query.device)
    return _attend_masked(query, key, value, mask, options)


def _attend_masked(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, options: AttentionOptions
) -> Tensor:
    if options.softcap or options.sinks is not None:
        return _attend_plainly(query, key, value, mask, options)
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=options.scaling, enable_gqa=True
    )


def _attend_plainly(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, options: AttentionOptions
) -> Tensor:
    """Write the formula out, softmax in float32."""
    repeats = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    scaling = query.shape[-1] ** -0.5 if options.scaling is None else options.scaling
    scores = (query @ key.transpose(2, 3)).float() * scaling
    if options.softcap:
        scores = torch.tanh(scores / options.softcap) * options.softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    if options.sinks is not None:
        sinks = options.sinks.float().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, sinks], dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., : key.shape[2]]
    return weights.to(value.dtype) @ value


def paged_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Be transformers' attention function: hand the layer's call to the cache bound to it."""
    assert attention_mask is None, "transformers built a mask for paged attention"
    options = AttentionOptions(
        kwargs.get("scaling"),
        kwargs.get("sliding_window"),
        kwargs.get("softcap"),
        kwargs.get("s_aux"),
    )
    cache: Any = module.kv_cache
    attended: Tensor = cache.attend(module.layer_idx, query, key, value, options)
    return attended.transpose(1, 2).contiguous(), None


def register_attention() -> None:
    """Make the name `ATTENTION_NAME` known to transformers; may be repeated."""
    AttentionInterface.register(ATTENTION_NAME, paged_attention)


def bind_cache(model: nn.Module, cache: Any) -> None:
    """Tell every layer where its KV is."""
    for module in model.modules():
        if hasattr(module, "layer_idx"):
            module.kv_cache = cache
