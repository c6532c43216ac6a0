"""Decoder layers of the Llama family with fewer passes over memory; computes what they compute.

One product makes queries, keys and values; norms, residuals and activations ride on products; the
last layer goes on only with the rows whose logits are wanted. Applied where a layer is known to be
of this form; whoever applies it compares the logits before and after.

Source: our measurement, SmolLM2 float32 on 2 cores, in tests/bench/LOG.md.
"""

from typing import Any

import torch
from torch import Tensor, nn

from prefix_layer.attention import AttentionOptions
from prefix_layer.kv_cache import PagedKVCache
from prefix_layer.loops import GROUP, Norm
from prefix_layer.narrow import LANES, MAX_HEAD_DIM, MAX_ROWS, NarrowKernel
from prefix_layer.prepack import reorder

_LAYERS = {"LlamaDecoderLayer", "MistralDecoderLayer", "Qwen2DecoderLayer"}
_SILU = {"SiLU", "SiLUActivation"}
_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
_DTYPES = {torch.float32, torch.bfloat16}
_GATED = ("gate_proj", "up_proj", "down_proj")


class LeanProduct:
    """One or several linear layers over the same rows as one: few rows by the kernel."""

    def __init__(self, linears: list[nn.Linear], kernel: NarrowKernel) -> None:
        weights: list[Tensor] = [linear.weight.detach() for linear in linears]
        weight = torch.cat(weights)
        biases: list[Tensor] = [linear.bias for linear in linears if linear.bias is not None]
        self.bias = torch.cat(biases).detach().float() if biases else None
        self.narrow = kernel.pack(weight)
        self._kernel = kernel
        self.max_rows = 0 if self.narrow is None else kernel.max_rows(self.narrow)
        self.wide = None if self.max_rows > MAX_ROWS else reorder(weight)

    def __call__(
        self, rows: Tensor, norm: Norm | None = None, add_to: Tensor | None = None
    ) -> Tensor:
        """Return the product of the normed rows, plus ``add_to``, which may be overwritten."""
        if self.narrow is not None and rows.shape[0] <= self.max_rows:
            return self._kernel.linear(rows, self.narrow, self.bias, norm, add_to)
        rows = rows if norm is None else self._kernel.norm(rows, norm)
        if add_to is not None:
            added: Tensor = torch.ops.mkldnn._linear_pointwise.binary(  # noqa: SLF001
                rows, add_to, self.wide, self.bias, "add"
            )
            return added
        plain: Tensor = torch.ops.mkldnn._linear_pointwise(  # noqa: SLF001
            rows, self.wide, self.bias, "none", [], ""
        )
        return plain


class LeanGate:
    """``silu(gate(x)) * up(x)``."""

    def __init__(self, gate: nn.Linear, up: nn.Linear, kernel: NarrowKernel) -> None:
        self.both = LeanProduct([gate, up], kernel)
        self._kernel = kernel

    def __call__(self, rows: Tensor, norm: Norm) -> Tensor:
        """Return the gated product of the normed rows."""
        narrow = self.both.narrow
        if narrow is not None and rows.shape[0] <= self.both.max_rows:
            return self._kernel.gated(rows, narrow, norm)
        return self._kernel.gate(self.both(rows, norm))


class LeanLayer(nn.Module):
    """Stands for one decoder layer; ``is_last`` computes only rows whose logits are wanted."""

    def __init__(
        self, layer: Any, cache: PagedKVCache, kernel: NarrowKernel, *, is_last: bool
    ) -> None:
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp
        q, k, v, o = (getattr(attention, name) for name in _PROJECTIONS)
        self.index: int = attention.layer_idx
        self.options = AttentionOptions(scaling=attention.scaling)
        self._head_dim: int = attention.head_dim
        self._cache = cache
        self._is_last = is_last
        self.norms = [_norm(layer.input_layernorm), _norm(layer.post_attention_layernorm)]
        self._qkv, self._out = LeanProduct([q, k, v], kernel), LeanProduct([o], kernel)
        self._gate = LeanGate(mlp.gate_proj, mlp.up_proj, kernel)
        self._down = LeanProduct([mlp.down_proj], kernel)

    @property
    def products(self) -> list[LeanProduct]:
        """The products in the order in which rows go through them."""
        return [self._qkv, self._out, self._gate.both, self._down]

    def forward(
        self, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor], **_: Any
    ) -> Tensor:
        """Return the layer's output (1, rows, hidden_size) for rows of the same shape."""
        rows = hidden_states[0]
        count = rows.shape[0]
        merged = self._qkv(rows, self.norms[0]).view(count, -1, self._head_dim)
        rotary = self._cache.rotary(position_embeddings)
        assert rotary[0].shape == (count, self._head_dim), "only whole heads can be rotated"
        attended = self._cache.attend_merged(
            self.index, merged, rotary, self.options, ends=self._is_last
        )
        wanted = self._cache.last_rows if attended.shape[0] < count else None
        rows = self._out(attended, add_to=rows if wanted is None else rows[wanted])
        rows = self._down(self._gate(rows, self.norms[1]), add_to=rows)
        if wanted is not None:
            rows = rows.new_zeros(count, rows.shape[1]).index_copy_(0, torch.tensor(wanted), rows)
        return rows[None]


def find_layers(model: nn.Module, cache: PagedKVCache) -> tuple[nn.Module, str] | None:
    """Find the module and the name under which it has its decoder layers, if all are known."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if isinstance(child, nn.ModuleList) and len(child) == len(cache.shapes):
                known = all(_is_known(x, cache.shapes[i].window) for i, x in enumerate(child))
                return (parent, name) if known else None
    return None


def _is_known(layer: Any, window: int | None) -> bool:
    if window is not None or type(layer).__name__ not in _LAYERS:
        return False
    attention, mlp, norm = layer.self_attn, layer.mlp, layer.input_layernorm.weight
    linears = [getattr(attention, name, None) for name in _PROJECTIONS]
    linears += [getattr(mlp, name, None) for name in _GATED]
    if any(type(part) is not nn.Linear for part in linears):
        return False
    biased = [part.bias is not None for part in linears if part is not None]
    all_or_none = len(set(biased[:3])) == 1 and not any(biased[4:])
    plain = type(mlp.act_fn).__name__ in _SILU and norm.dtype in _DTYPES
    whole = all(not part.in_features % GROUP for part in linears if part is not None)
    sizes = (whole or norm.dtype == torch.float32) and not attention.head_dim % LANES
    sizes = sizes and not norm.numel() % GROUP
    sizes = sizes and not mlp.gate_proj.out_features % LANES
    return all_or_none and plain and sizes and attention.head_dim <= MAX_HEAD_DIM


def _norm(module: Any) -> Norm:
    return Norm(module.weight.detach().float(), float(module.variance_epsilon))
