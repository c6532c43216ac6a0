"""How the KV of one block becomes bytes for host memory and disk, and KV again. Knows no tiers.

A block's KV comes as views of the pool, (block_size, num_kv_heads, dim) each, keys and values of
every layer. The bytes are one flat uint8 tensor.
"""

from typing import Protocol

import torch
from torch import Tensor

from prefix_layer.config import CodecName

_LEVELS = 127
_SCALE = torch.float32


class Codec(Protocol):
    """Turns views into ``num_bytes`` bytes and back."""

    num_bytes: int

    def encode(self, views: list[Tensor], target: Tensor) -> None:
        """Fill ``target`` (num_bytes,) with what the views hold."""
        ...

    def decode(self, source: Tensor, views: list[Tensor]) -> None:
        """Fill the views with what ``source`` (num_bytes,) was made of."""
        ...


class PlainCodec:
    """The numbers as they are: what comes back is bit-equal."""

    def __init__(self, views: list[Tensor]) -> None:
        self._dtype = views[0].dtype
        self._sizes = [view.numel() for view in views]
        self.num_bytes = sum(self._sizes) * self._dtype.itemsize

    def encode(self, views: list[Tensor], target: Tensor) -> None:
        """Join the views."""
        parts = [view.reshape(-1) for view in views]
        if parts[0].device == target.device:
            torch.cat(parts, out=target.view(self._dtype))
        else:
            target.copy_(torch.cat(parts).view(torch.uint8))

    def decode(self, source: Tensor, views: list[Tensor]) -> None:
        """Part the bytes again."""
        flat = source.to(views[0].device).view(self._dtype)
        _fill(views, list(torch.split(flat, self._sizes)))


class Int8Codec:
    """Eight bits a number, with one scale for each token, head and layer.

    Bytes: all scales, float32, then all numbers, views with equal ``dim`` together.
    Source: the choice of one scale per token and head is measured by tests/bench/bench_kv_codec.py.
    """

    def __init__(self, views: list[Tensor]) -> None:
        self._groups: dict[int, list[int]] = {}
        for place, view in enumerate(views):
            if view.numel():
                self._groups.setdefault(view.shape[-1], []).append(place)
        self._rows = {
            dim: [views[place].numel() // dim for place in places]
            for dim, places in self._groups.items()
        }
        self._num_scales = sum(sum(rows) for rows in self._rows.values())
        num_values = sum(view.numel() for view in views)
        self.num_bytes = self._num_scales * _SCALE.itemsize + num_values

    def encode(self, views: list[Tensor], target: Tensor) -> None:
        """Scale each row to -127..127 and round."""
        scales: list[Tensor] = []
        values: list[Tensor] = []
        for dim, places in self._groups.items():
            rows = torch.cat([views[place].reshape(-1, dim) for place in places]).to(_SCALE)
            scale = rows.abs().amax(dim=1, keepdim=True).div_(_LEVELS)
            scales.append(scale.view(-1))
            values.append(rows.div_(scale.clamp(min=1e-30)).round_().to(torch.int8).view(-1))
        at = self._num_scales * _SCALE.itemsize
        target[:at].view(_SCALE).copy_(torch.cat(scales))
        target[at:].view(torch.int8).copy_(torch.cat(values))

    def decode(self, source: Tensor, views: list[Tensor]) -> None:
        """Multiply each row by its scale."""
        flat = source.to(views[0].device)
        at = self._num_scales * _SCALE.itemsize
        scales, values = flat[:at].view(_SCALE), flat[at:].view(torch.int8)
        for dim, places in self._groups.items():
            count = sum(self._rows[dim])
            rows = values[: count * dim].view(count, dim) * scales[:count, None]
            scales, values = scales[count:], values[count * dim :]
            _fill([views[place] for place in places], list(torch.split(rows, self._rows[dim])))


def _fill(views: list[Tensor], parts: list[Tensor]) -> None:
    shaped = [part.reshape(view.shape) for view, part in zip(views, parts, strict=True)]
    torch._foreach_copy_(views, shaped)


def make_codec(name: CodecName, views: list[Tensor]) -> Codec:
    """Make the codec of this name for blocks of this form."""
    return Int8Codec(views) if name == "int8" else PlainCodec(views)
