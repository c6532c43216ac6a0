"""The memory of the pool: keys and values of every layer, in the form transformers expects a cache.

Knows slots, not blocks or sequences. Slot ``block_id * block_size + i`` holds a block's i-th token.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from prefix_layer.attention import AttentionOptions, Span, attend, attend_expanded


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

    ``slot_mapping`` (rows,) int64.
    """

    slot_mapping: Tensor
    spans: list[Span]


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
    ) -> None:
        self._shapes = shapes
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
        if not self._shapes[layer_idx].latent:
            return key, value
        context = torch.cat([span.slots_from(0, slots.device) for span in self._plan.spans])
        key, value = self._keys[layer_idx][context], self._values[layer_idx][context]
        return key.transpose(0, 1)[None], value.transpose(0, 1)[None]

    def attend(
        self, layer_idx: int, query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions
    ) -> Tensor:
        """Attend with all rows, each to its own sequence; returns (1, num_heads, rows, dim)."""
        assert self._plan is not None, "attend outside of a step"
        pool = (self._keys[layer_idx], self._values[layer_idx])
        attended: list[Tensor] = []
        begin = 0
        for span in self._plan.spans:
            rows = slice(span.first_row, span.last_row)
            if self._shapes[layer_idx].latent:
                context = slice(begin, begin + span.end)
                begin += span.end
                new = (key[:, :, context], value[:, :, context])
                attended.append(attend_expanded(query[:, :, rows], *new, span, options))
            else:
                new = (key[:, :, rows], value[:, :, rows])
                attended.append(attend(query[:, :, rows], new, pool, span, options))
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
