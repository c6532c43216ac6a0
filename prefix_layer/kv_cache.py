"""The memory of the pool: keys and values of every layer, in the form transformers expects a cache.

Knows slots, not blocks or sequences. Slot ``block_id * block_size + i`` holds a block's i-th token.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from prefix_layer.attention import (
    AttentionOptions,
    SingleRows,
    Span,
    attend,
    attend_expanded,
    single_rows,
)
from prefix_layer.narrow import LANES, MAX_HEAD_DIM, NarrowKernel


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Sizes of one layer's KV per token, as the model was seen to write them.

    ``latent``: the model caches latents and expands them to keys and values itself, so it must be
    given those of the whole context.
    """

    num_kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    latent: bool = False

    @property
    def num_values(self) -> int:
        """Numbers kept per token."""
        return self.num_kv_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Where the rows of one forward pass write their KV, and what they attend to.

    ``slot_mapping`` (rows,) int64. ``only_ends``: logits are wanted of each span's last row alone.
    """

    slot_mapping: Tensor
    spans: list[Span]
    only_ends: bool = False
    seen: dict[tuple[int | None, bool], SingleRows] = field(default_factory=dict)
    rotary: list[Tensor] = field(default_factory=list)

    @property
    def alone(self) -> list[Span]:
        """Spans of one row, as decoding sequences have."""
        return [span for span in self.spans if span.num_rows == 1]

    def single_rows(self, window: int | None, *, ends: bool = False) -> SingleRows:
        """List what spans of one row see; for ``ends``, what the last row of every span does."""
        if (window, ends) not in self.seen:
            self.seen[window, ends] = single_rows(self.spans if ends else self.alone, window)
        return self.seen[window, ends]


class PagedKVCache:
    """Preallocated keys and values, (num_slots, num_kv_heads, dim) per layer.

    Memory is reserved, not touched: a slot is written before it is ever read.
    """

    def __init__(
        self,
        shapes: list[LayerShape],
        num_slots: int,
        dtype: torch.dtype,
        device: torch.device,
        kernel: NarrowKernel | None = None,
    ) -> None:
        self.shapes = shapes
        self.kernel = kernel
        self._keys = [
            torch.empty(num_slots, s.num_kv_heads, s.key_dim, dtype=dtype, device=device)
            for s in shapes
        ]
        self._values = [
            torch.empty(num_slots, s.num_kv_heads, s.value_dim, dtype=dtype, device=device)
            for s in shapes
        ]
        self.bytes_per_slot = sum(s.num_values for s in shapes) * dtype.itemsize
        self._plan: StepPlan | None = None

    @property
    def last_rows(self) -> list[int]:
        """Row of each span's last token."""
        assert self._plan is not None, "rows outside of a step"
        return [span.last_row - 1 for span in self._plan.spans]

    def rotary(self, embeddings: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return cosines and sines (rows, head_dim), made once a step from (1, rows, head_dim)."""
        assert self._plan is not None, "rows outside of a step"
        if not self._plan.rotary:
            self._plan.rotary.extend(part[0].float().contiguous() for part in embeddings)
        return self._plan.rotary[0], self._plan.rotary[1]

    def pool(self, layer_idx: int) -> tuple[Tensor, Tensor]:
        """Return a layer's keys and values, (num_slots, num_kv_heads, dim) each."""
        return self._keys[layer_idx], self._values[layer_idx]

    def rows_alone(self) -> tuple[Tensor, SingleRows] | None:
        """Return where a step's rows write and what they see if each is its sequence's only one."""
        assert self._plan is not None, "rows outside of a step"
        if len(self._plan.slot_mapping) != len(self._plan.spans):
            return None
        return self._plan.slot_mapping, self._plan.single_rows(None, ends=True)

    def copy(self, sources: Tensor, targets: Tensor) -> None:
        """Copy KV of all layers from slots to other slots, (num_slots,) int64 each."""
        for layer in [*self._keys, *self._values]:
            layer.index_copy_(0, targets, layer[sources])

    def begin(self, plan: StepPlan) -> None:
        """Set what the next forward pass writes and reads."""
        self._plan = plan

    def update(
        self, key: Tensor, value: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the rows' KV (1, num_kv_heads, rows, dim) to their slots.

        Returns it as given; for a latent layer the latents of all spans, one after the other.
        """
        assert self._plan is not None, "update outside of a step"
        slots = self._plan.slot_mapping
        self._keys[layer_idx].index_copy_(0, slots, key[0].transpose(0, 1))
        self._values[layer_idx].index_copy_(0, slots, value[0].transpose(0, 1))
        if not self.shapes[layer_idx].latent:
            return key, value
        context = torch.cat([span.slots_from(0, slots.device) for span in self._plan.spans])
        key, value = self._keys[layer_idx][context], self._values[layer_idx][context]
        return key.transpose(0, 1)[None], value.transpose(0, 1)[None]

    def attend(
        self, layer_idx: int, query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions
    ) -> Tensor:
        """Attend with all rows, each to its own sequence; returns (1, num_heads, rows, dim)."""
        assert self._plan is not None, "attend outside of a step"
        if self.shapes[layer_idx].latent:
            return self._attend_latent(query, key, value, options)
        pool = (self._keys[layer_idx], self._values[layer_idx])
        if self._fits(pool, options):
            return self._attend_by_kernel(query, pool, options)
        attended = []
        for span in self._plan.spans:
            rows = slice(span.first_row, span.last_row)
            new = (key[:, :, rows], value[:, :, rows])
            attended.append(attend(query[:, :, rows], new, pool, span, options))
        return attended[0] if len(attended) == 1 else torch.cat(attended, dim=2)

    def attend_merged(
        self,
        layer_idx: int,
        merged: Tensor,
        rotary: tuple[Tensor, Tensor],
        options: AttentionOptions,
        *,
        ends: bool,
    ) -> Tensor:
        """Rotate queries and keys, write KV and attend; needs the kernel.

        ``merged`` (rows, num_heads + 2 * num_kv_heads, head_dim) is changed. Returns (rows,
        num_heads * head_dim), or, for ``ends``, only the last row of every span where no more are
        wanted.
        """
        assert self._plan is not None, "attend outside of a step"
        assert self.kernel is not None, "no kernel"
        pool = (self._keys[layer_idx], self._values[layer_idx])
        self.kernel.rotate(merged, *rotary, self._plan.slot_mapping, pool)
        num_kv_heads = pool[0].shape[1]
        query = merged[:, : -2 * num_kv_heads]
        alone = merged.shape[0] == len(self._plan.spans)
        if alone or (ends and self._plan.only_ends):
            seen = self._plan.single_rows(options.window, ends=True)
            last = query if alone else query[seen.rows]
            assert options.scaling is not None
            attended = self.kernel.attend(last, pool, seen.runs, seen.bounds, options.scaling)
            return attended.flatten(1)
        key, value = merged[:, -2 * num_kv_heads : -num_kv_heads], merged[:, -num_kv_heads:]
        query, key, value = (part.transpose(0, 1)[None] for part in (query, key, value))
        attended = self.attend(layer_idx, query, key, value, options)
        return attended[0].transpose(0, 1).reshape(len(merged), -1)

    def _fits(self, pool: tuple[Tensor, Tensor], options: AttentionOptions) -> bool:
        """Say whether the kernel can attend here."""
        dim = pool[0].shape[-1]
        plain = not options.softcap and options.sinks is None
        same = pool[1].shape[-1] == dim and not dim % LANES and dim <= MAX_HEAD_DIM
        return self.kernel is not None and plain and same

    def _attend_by_kernel(
        self, query: Tensor, pool: tuple[Tensor, Tensor], options: AttentionOptions
    ) -> Tensor:
        """Attend with all rows that are sequences of their own at once, then span by span."""
        assert self._plan is not None
        assert self.kernel is not None
        rows = query[0].transpose(0, 1).float()
        if rows.stride()[1:] != (rows.shape[-1], 1):
            rows = rows.contiguous()
        scaling = rows.shape[-1] ** -0.5 if options.scaling is None else options.scaling
        alone = self._plan.single_rows(options.window)
        if len(alone.rows) == len(self._plan.spans):
            attended = self.kernel.attend(rows, pool, alone.runs, alone.bounds, scaling)
            return attended.transpose(0, 1)[None].to(query.dtype)
        attended = rows.new_empty(rows.shape)
        if alone.rows:
            own = rows[alone.rows]
            attended[alone.rows] = self.kernel.attend(own, pool, alone.runs, alone.bounds, scaling)
        for span in self._plan.spans:
            if span.num_rows > 1:
                part = slice(span.first_row, span.last_row)
                attended[part] = self.kernel.attend_span(
                    rows[part], pool, span.run_tensor, span.start, options.window, scaling
                )
        return attended.transpose(0, 1)[None].to(query.dtype)

    def _attend_latent(
        self, query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions
    ) -> Tensor:
        assert self._plan is not None
        attended: list[Tensor] = []
        begin = 0
        for span in self._plan.spans:
            rows = slice(span.first_row, span.last_row)
            context = slice(begin, begin + span.end)
            begin += span.end
            new = (key[:, :, context], value[:, :, context])
            attended.append(attend_expanded(query[:, :, rows], *new, span, options))
        return attended[0] if len(attended) == 1 else torch.cat(attended, dim=2)

    def block(self, block_id: int, block_size: int) -> list[Tensor]:
        """Return views of a block's KV: keys then values of each layer."""
        slots = slice(block_id * block_size, (block_id + 1) * block_size)
        return [
            layer[slots] for pair in zip(self._keys, self._values, strict=True) for layer in pair
        ]

    def get_seq_length(self, *_: Any) -> int:
        """Return 0: positions are always given explicitly."""
        return 0


class ProbeCache:
    """Stands in for the cache in one forward pass to see what shapes the model writes.

    ``shapes`` maps a layer's index to what it wrote and how it attended.
    """

    def __init__(self) -> None:
        self.shapes: dict[int, LayerShape] = {}
        self.attended: list[int] = []

    def update(
        self, key: Tensor, value: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Note the shapes; return what was given."""
        self.shapes[layer_idx] = LayerShape(key.shape[1], key.shape[3], value.shape[3])
        return key, value

    def attend(
        self, layer_idx: int, query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions
    ) -> Tensor:
        """Note the layer's window and kind; return zeros of the right shape."""
        shape = self.shapes.get(layer_idx, LayerShape(0, 0, 0))
        written = (shape.num_kv_heads, shape.key_dim, shape.value_dim)
        latent = written != (key.shape[1], key.shape[3], value.shape[3])
        self.shapes[layer_idx] = replace(shape, window=options.window, latent=latent)
        self.attended.append(layer_idx)
        return query.new_zeros(*query.shape[:3], value.shape[3])

    def get_seq_length(self, *_: Any) -> int:
        """Return 0: nothing is held."""
        return 0
