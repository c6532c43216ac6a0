"""All lean layers of a model as one: a decode step goes through them in one call (layers.c).

Source: our measurement, SmolLM2 on 2 cores, in tests/bench/LOG.md.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from native_library import function
from prefix_layer.kv_cache import PagedKVCache
from prefix_layer.lean import LeanLayer, LeanProduct
from prefix_layer.loops import GROUP, Norm
from prefix_layer.narrow import NarrowKernel

_C_ROWS = 8
_ROOM_PER_GROUP = GROUP + 1


class _Product(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("outputs", ctypes.c_int64),
        ("inputs", ctypes.c_int64),
        ("bits", ctypes.c_int32),
        ("loops", ctypes.c_int32),
    )


class _Layer(ctypes.Structure):
    _fields_ = (
        ("first_norm", ctypes.c_void_p),
        ("second_norm", ctypes.c_void_p),
        ("first_eps", ctypes.c_float),
        ("second_eps", ctypes.c_float),
        ("qkv", _Product),
        ("out", _Product),
        ("gate", _Product),
        ("down", _Product),
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("heads", ctypes.c_int64),
        ("kv_heads", ctypes.c_int64),
        ("dim", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("half", ctypes.c_int32),
    )


class LayerStack(nn.Module):
    """Stands for all decoder layers; rows that are not each a sequence's go layer by layer."""

    def __init__(
        self, layers: Sequence[LeanLayer], cache: PagedKVCache, kernel: NarrowKernel
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self._cache = cache
        products = [product for layer in layers for product in layer.products]
        self._max_rows = min(product.max_rows for product in products)
        narrow = [product.narrow for product in products if product.narrow is not None]
        self._deepest = max((weight.num_inputs for weight in narrow), default=0)
        self._widest = max((weight.num_outputs for weight in narrow), default=0)
        self._step = function(kernel.library, "layers_step", "pl pl pp ppp pp p")
        self._table = (_Layer * len(layers))()
        if self._max_rows:
            self._table[:] = [_row(layer, cache, kernel) for layer in layers]

    def forward(
        self, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor], **_: Any
    ) -> Tensor:
        """Return the last layer's output (1, rows, hidden_size) for rows of the same shape."""
        alone = self._cache.rows_alone()
        if alone is None or hidden_states.shape[1] > self._max_rows:
            wide = hidden_states.float()
            for layer in self.layers:
                wide = layer(wide, position_embeddings)
            return wide.to(hidden_states.dtype)
        slots, seen = alone
        rows = hidden_states[0].to(torch.float32, copy=True)
        count = rows.shape[0]
        wide, narrow = rows.new_empty(2, count, self._widest)
        scratch = rows.new_empty(max(count, _C_ROWS), self._deepest // GROUP * _ROOM_PER_GROUP)
        cos, sin = self._cache.rotary(position_embeddings)
        self._step(
            *(ctypes.addressof(self._table), len(self._table), rows.data_ptr(), count),
            *(cos.data_ptr(), sin.data_ptr(), slots.data_ptr()),
            *(seen.runs.data_ptr(), seen.bounds.data_ptr()),
            *(wide.data_ptr(), narrow.data_ptr(), scratch.data_ptr()),
        )
        return rows[None].to(hidden_states.dtype)


def stack_layers(layers: nn.ModuleList, cache: PagedKVCache, kernel: NarrowKernel) -> nn.ModuleList:
    """Return what stands for all layers, as a list of one."""
    last = len(layers) - 1
    with torch.inference_mode():
        lean = [LeanLayer(x, cache, kernel, is_last=i == last) for i, x in enumerate(layers)]
        return nn.ModuleList([LayerStack(lean, cache, kernel)])


def _row(layer: LeanLayer, cache: PagedKVCache, kernel: NarrowKernel) -> _Layer:
    keys, values = cache.pool(layer.index)
    num_kv_heads, dim = keys.shape[1:]
    qkv, out, gate, down = (_product(product, kernel) for product in layer.products)
    first, second = layer.norms
    assert layer.options.scaling is not None
    return _Layer(
        *(_address(first), _address(second), first.eps, second.eps),
        *(qkv, out, gate, down),
        *(keys.data_ptr(), values.data_ptr()),
        *(qkv.outputs // dim - 2 * num_kv_heads, num_kv_heads, dim),
        *(layer.options.scaling, keys.dtype == torch.bfloat16),
    )


def _product(product: LeanProduct, kernel: NarrowKernel) -> _Product:
    weight, bias = product.narrow, product.bias
    assert weight is not None
    return _Product(
        weight.words.data_ptr(),
        None if bias is None else bias.data_ptr(),
        *(weight.num_outputs, weight.num_inputs, weight.bits, kernel.loops_for(weight).number),
    )


def _address(norm: Norm) -> int:
    return norm.weight.data_ptr()
