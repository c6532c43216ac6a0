"""Encoder layers in one call of our own C loops, where compiler and CPU allow; see encoder.c.

Knows no model files. Products are of whole numbers of 8 bits; channels that are much louder than
others give some of it to their weights. Source: SmoothQuant (Xiao et al., ICML 2023), equation 4.
"""

import ctypes
import functools
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

from native_library import CannotCompile, compiled, function
from semantic_layer.models.layer_weights import LayerWeights

SOURCES = ("encoder.c", "joint.c", "bytes.c", "helpers.c")
TILE, GROUP = 32, 128  # as in bytes.h
_LANES = 16
_MOST, _LIFT = 127, 128
_QUIET = 1e-6
MOST_TOKENS = 2_048  # of one text: its attention takes room on the stack
_MOST_HELPERS = 3

InBytes = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # smoothing, tiles, bias

log = logging.getLogger("strata.semantic")


@dataclass(frozen=True, slots=True)
class Loudness:
    """The largest number of each channel ``(hidden,)`` of what a layer's products are given.

    Of ``out`` and ``down`` nothing is gained by knowing it. Source: our measurement.
    """

    qkv: torch.Tensor
    up: torch.Tensor


class Stack(ctypes.Structure):
    """Layers as layers.h has them."""

    _fields_ = (
        ("layers", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("count", "hidden", "heads", "inner")),
        ("eps", ctypes.c_float),
    )


class CompiledLayers:
    """Layers one above the other; rows of several texts pass through all of them in one call.

    Thread-safe, and free of the interpreter lock while it works.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        layers: Sequence[LayerWeights],
        loudness: Sequence[Loudness],
        num_heads: int,
        norm_eps: float,
    ) -> None:
        self._apply = function(library, "encoder_apply", "p plpl")
        self._kept = [
            tensor
            for layer, loud in zip(layers, loudness, strict=True)
            for tensor in _laid_out(layer, loud)
        ]
        self._addresses = _addresses(self._kept)
        inner, hidden = layers[0].up[0].shape
        address = ctypes.addressof(self._addresses)
        self.stack = Stack(address, len(layers), hidden, num_heads, inner, norm_eps)

    def __call__(self, x: torch.Tensor, texts: Sequence[slice]) -> torch.Tensor:
        """Apply to the rows ``(tokens, hidden)`` of all texts; each attends to its own rows.

        Raises:
            RuntimeError: there is no memory, or a text is longer than any model's window.
        """
        rows = x.float().clone(memory_format=torch.contiguous_format)
        bounds = [*(text.start for text in texts), texts[-1].stop]
        longest = max(text.stop - text.start for text in texts)
        starts = (ctypes.c_long * len(bounds))(*bounds)
        if longest > MOST_TOKENS or self._apply(
            ctypes.byref(self.stack), rows.data_ptr(), len(rows), starts, len(texts)
        ):
            raise RuntimeError(f"{longest} tokens can't be encoded")
        return rows


class CompiledProduct:
    """A linear layer by the same loops, of any size: filled up with zeros to whole tiles."""

    def __init__(self, library: ctypes.CDLL, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self._product = function(library, "encoder_product", "pl p ll p")
        self._num_out, self._num_in = weight.shape
        self._more_in = -self._num_in % GROUP
        self._kept = filled_up(weight, bias)
        self._addresses = _addresses(self._kept)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Apply to rows ``(rows, in)``; give ``(rows, out)``, float32.

        Raises:
            RuntimeError: there is no memory.
        """
        rows = functional.pad(x.float(), (0, self._more_in)).contiguous()
        num_rows, num_in = rows.shape
        out = rows.new_empty(num_rows, len(self._kept[-1]))
        if self._product(
            rows.data_ptr(), num_rows, self._addresses, num_in, out.shape[1], out.data_ptr()
        ):
            raise RuntimeError("no memory for a product")
        return out[:, : self._num_out]


def compiled_product(weight: torch.Tensor, bias: torch.Tensor) -> CompiledProduct | None:
    """Return a linear layer compiled; None where the machine can't."""
    library = load_library()
    return None if library is None else CompiledProduct(library, weight, bias)


def compiled_layers(
    layers: Sequence[LayerWeights],
    loudness: Sequence[Loudness],
    num_heads: int,
    norm_eps: float,
    max_positions: int,
) -> CompiledLayers | None:
    """Return the layers compiled; None where the machine can't, or the sizes are odd."""
    inner, hidden = layers[0].up[0].shape
    even = hidden % GROUP == inner % GROUP == hidden // num_heads % _LANES == 0
    library = load_library() if even and max_positions <= MOST_TOKENS else None
    if library is None:
        return None
    return CompiledLayers(library, layers, loudness, num_heads, norm_eps)


@functools.cache
def load_library() -> ctypes.CDLL | None:
    """Load the loops, once per process; None without a compiler or products of bytes."""
    try:
        library = compiled("encoder", Path(__file__).parent, SOURCES, ["-pthread"])
    except CannotCompile as error:
        log.info("no C loops (%s): texts are encoded by torch's operators alone", error)
        return None
    if not library.encoder_is_there():
        return None
    library.helpers_start(min(_num_cpus() - 1, _MOST_HELPERS))
    return library


def _num_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _laid_out(layer: LayerWeights, loud: Loudness) -> list[torch.Tensor]:
    """Return a layer's tensors in the order of encoder.c's ``Layer``."""
    norms = (*layer.attention_norm, *layer.output_norm)
    return [
        *_in_bytes(*layer.qkv, loud.qkv),
        *_in_bytes(*layer.out),
        *_in_bytes(*layer.up, loud.up),
        *_in_bytes(*layer.down),
        *(tensor.float().contiguous() for tensor in norms),
    ]


def filled_up(weight: torch.Tensor, bias: torch.Tensor) -> InBytes:
    """Return what bytes.h calls a ``Weight``, of one ``(n, k)`` filled up to whole tiles."""
    more_out, more_in = -weight.shape[0] % TILE, -weight.shape[1] % GROUP
    weight = functional.pad(weight.float(), (0, more_in, 0, more_out))
    return _in_bytes(weight, functional.pad(bias.float(), (0, more_out)))


def _in_bytes(
    weight: torch.Tensor, bias: torch.Tensor, loud: torch.Tensor | None = None
) -> InBytes:
    """Return what bytes.h calls a ``Weight``, of a weight ``(n, k)``."""
    smoothing = torch.ones(weight.shape[1])
    if loud is not None:
        smoothing = (weight.abs().amax(0).clamp(min=_QUIET) / loud.clamp(min=_QUIET)).sqrt()
        smoothing /= smoothing.log().mean().exp()
    return smoothing, _tiled(weight / smoothing), bias.float().contiguous()


def _tiled(weight: torch.Tensor) -> torch.Tensor:
    """Lay a weight ``(n, k)`` out as bytes.h tells: ``(n / 32, k / 128, 4352)``, int8."""
    n, k = weight.shape
    grouped = weight.view(n // TILE, TILE, k // GROUP, GROUP).transpose(1, 2)
    scales = (grouped.abs().amax(-1) / _MOST).clamp(min=torch.finfo().tiny)
    digits = (grouped / scales[..., None]).round().to(torch.int8)
    taken_back = -_LIFT * digits.sum(-1, dtype=torch.int32)
    fours = digits.view(*digits.shape[:-1], GROUP // 4, 4).transpose(2, 3).flatten(2)
    return torch.cat([fours, scales.view(torch.int8), taken_back.view(torch.int8)], -1).contiguous()


def _addresses(tensors: Sequence[torch.Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
