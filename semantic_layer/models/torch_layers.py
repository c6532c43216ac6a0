"""Layers of a BERT encoder on torch, with weights laid out once for the CPU's matrix kernels.

Knows no files. Source: design.md "Embedded parts", measured: a short text takes 16.7 ms through
transformers and 9.4 ms with prepacked linears on two cores.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from semantic_layer.models.layer_weights import BertShape, LayerWeights

_BATCH_HINT = 16  # rows the packed layout is tuned for: the tokens of one short question
_TOLERANCE = 1e-3
_HALF_TOLERANCE = 0.02  # of the largest number
_SHORT_ROWS, _MIDDLE_ROWS = 32, 256
_SHORT_STEP, _MIDDLE_STEP, _LONG_STEP = 4, 16, 64


def has_fast_half() -> bool:
    """Say whether this CPU multiplies bfloat16 natively, in about half the time of float32."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001 - no public name
    except (AttributeError, RuntimeError):
        return False


class PlainLinear:
    """A linear layer in float32 as torch has it: ready at once."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self._weight, self._bias = weight, bias

    def __call__(self, x: torch.Tensor, *, gelu: bool = False) -> torch.Tensor:
        """Apply to ``(..., in)``; give ``(..., out)``, after ``gelu`` if so wished."""
        y = functional.linear(x.float(), self._weight, self._bias)
        return functional.gelu(y) if gelu else y


class Linear:
    """A linear layer, packed for oneDNN where that gives the same numbers, plain elsewhere.

    It multiplies in bfloat16 where the CPU does so natively: within about 1%.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        self._half = has_fast_half()
        self._weight, self._bias = weight.contiguous(), bias.contiguous()
        self._packed_bias = self._bias.bfloat16() if self._half else self._bias
        self._packed = self._pack()

    def __call__(self, x: torch.Tensor, *, gelu: bool = False) -> torch.Tensor:
        """Apply to ``(..., in)``; give ``(..., out)``: float32, or as multiplied after ``gelu``."""
        if self._packed is None:
            return PlainLinear(self._weight, self._bias)(x, gelu=gelu)
        if gelu:
            return self._multiply(x, self._packed, "gelu", "none")
        return self._multiply(x, self._packed, "none", "").float()

    def _multiply(
        self, x: torch.Tensor, packed: torch.Tensor, name: str, algorithm: str
    ) -> torch.Tensor:
        result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(  # noqa: SLF001 - no public name
            x.bfloat16() if self._half else x, packed, self._packed_bias, name, [], algorithm
        )
        return result

    def _pack(self) -> torch.Tensor | None:
        if self._weight.device.type != "cpu":
            return None
        probe = torch.linspace(-1, 1, 3 * self._weight.shape[1]).view(3, -1)
        weight = self._weight.bfloat16() if self._half else self._weight
        try:
            packed: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(  # noqa: SLF001 - the same
                weight, _BATCH_HINT
            )
            got = self._multiply(probe, packed, "none", "").float()
        except (AttributeError, RuntimeError):
            return None
        wanted = functional.linear(probe, self._weight, self._bias)
        tolerance = _HALF_TOLERANCE * float(wanted.abs().max()) if self._half else _TOLERANCE
        return packed if torch.allclose(got, wanted, atol=tolerance) else None


class Layer:
    """One encoder layer on torch: attention and feed-forward, each with its residual and norm."""

    def __init__(
        self,
        weights: LayerWeights,
        shape: BertShape,
        linear: type[Linear | PlainLinear],
    ) -> None:
        self._qkv, self._out, self._up, self._down = (
            linear(*pair) for pair in (weights.qkv, weights.out, weights.up, weights.down)
        )
        self._attention_norm, self._output_norm = weights.attention_norm, weights.output_norm
        self._shape = shape

    def __call__(self, x: torch.Tensor, texts: Sequence[slice]) -> torch.Tensor:
        """Apply to the rows ``(tokens, hidden)`` of all texts; each attends to its own rows."""
        return self.feed(self.attend(x, texts))

    def attend(self, x: torch.Tensor, texts: Sequence[slice]) -> torch.Tensor:
        """Apply the attention alone."""
        found = self._found(self._qkv(x), texts)
        return self._norm(x + self._out(found), self._attention_norm)

    def feed(self, x: torch.Tensor) -> torch.Tensor:
        """Apply what comes after the attention."""
        return self._norm(x + self._down(self._up(x, gelu=True)), self._output_norm)

    def _found(self, qkv: torch.Tensor, texts: Sequence[slice]) -> torch.Tensor:
        heads = qkv.view(len(qkv), 3, self._shape.num_heads, -1)
        attended = torch.zeros(len(qkv), *heads.shape[2:])
        for text in texts:
            q, k, v = heads[None, text].permute(2, 0, 3, 1, 4)
            found = functional.scaled_dot_product_attention(q, k, v)
            attended[text] = found[0].transpose(0, 1)
        return attended.view(len(qkv), -1)

    def _norm(self, x: torch.Tensor, norm: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return functional.layer_norm(x, (x.shape[-1],), *norm, self._shape.norm_eps)


class TorchLayers:
    """Layers one above the other; rows of several texts pass through all of them."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = layers

    def __call__(self, x: torch.Tensor, texts: Sequence[slice]) -> torch.Tensor:
        """Apply to the rows ``(tokens, hidden)`` of all texts; each attends to its own rows."""
        num_rows = len(x)
        x = functional.pad(x, (0, 0, 0, padded(num_rows) - num_rows))
        for layer in self._layers:
            x = layer(x, texts)
        return x[:num_rows]


def padded(num_rows: int) -> int:
    """Return the rows to multiply instead, with spare ones: few numbers of rows mean few shapes.

    oneDNN keeps a compiled kernel for each shape it has met. Source: measured, 800 texts of every
    length grow the process by 760 MB without rounding.
    """
    if num_rows <= _SHORT_ROWS:
        step = _SHORT_STEP
    else:
        step = _MIDDLE_STEP if num_rows <= _MIDDLE_ROWS else _LONG_STEP
    return -(-num_rows // step) * step
