"""Products and attention in bfloat16: near the true ones, whatever rows are beside a row."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers as tf
from torch.nn import functional

from prefix_layer import narrow
from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.layer_stack import LayerStack
from prefix_layer.loops import Norm
from prefix_layer.narrow import NarrowKernel, load_kernel
from tests.prefix_layer.driving import (
    drive,
    greedy,
    load_reference,
    next_logits,
    reference_logits,
    solo,
    tokens,
)
from tests.prefix_layer.kernels import error, needed_kernel, packed, weight_of

pytestmark = pytest.mark.cpu_flag("avx512_bf16")
COUNTS = (1, 2, 3, 4, 5, 11, 12, 13, 24, 25, 61)
MAKES = [tf.LlamaConfig, tf.MistralConfig, tf.Qwen2Config]


@pytest.fixture(scope="module")
def kernel() -> NarrowKernel:
    return needed_kernel(dtype=torch.bfloat16)


@pytest.mark.parametrize("count", COUNTS)
def test_product_is_that_of_rounded_rows(kernel: NarrowKernel, count: int) -> None:
    """Nothing is rounded but the rows; norm, bias and residual are float32; 3 tiles are no pair."""
    weight, small = packed(kernel, weight_of(16, 48, 96).bfloat16(), max(COUNTS))
    rows, bias, residual = torch.randn(count, 96), torch.randn(48), torch.randn(count, 48)
    assert error(kernel.linear(rows, small), rows.bfloat16().double() @ weight.T) < 1e-6
    norm = Norm(torch.rand(96), 1e-5)
    under_norm = functional.rms_norm(rows.double(), (96,), norm.weight.double(), norm.eps)
    expected = functional.linear(under_norm, weight, bias.double()) + residual
    actual = kernel.linear(rows, small, bias, norm, residual)
    assert actual.data_ptr() == residual.data_ptr()
    assert error(actual, expected) < 5e-3


@pytest.mark.parametrize("count", [1, 13])
def test_gate_is_near_torch_when_rows_are_large_and_small(kernel: NarrowKernel, count: int) -> None:
    """The activation holds at both ends of its range."""
    both, small = packed(kernel, weight_of(16, 64, 64).bfloat16(), max(COUNTS))
    gate, up = both.chunk(2)
    for scale in (1e-3, 1.0, 300.0):
        rows = (torch.randn(count, 64) * scale).bfloat16()
        expected = functional.silu(rows.double() @ gate.T) * (rows.double() @ up.T)
        assert error(kernel.gated(rows.float(), small), expected) < 1e-5


def test_rows_are_the_same_to_the_bit_when_others_are_beside_them(kernel: NarrowKernel) -> None:
    """One row, a few and many give what each row gives alone."""
    _, small = packed(kernel, weight_of(16, 96, 64).bfloat16(), max(COUNTS))
    rows, norm = torch.randn(61, 64), Norm(torch.rand(64), 1e-5)
    for compute in (kernel.linear, kernel.gated):
        extra = (None, norm) if compute == kernel.linear else (norm,)
        alone = torch.cat([compute(row[None], small, *extra) for row in rows])
        for count in COUNTS:
            assert torch.equal(compute(rows[:count], small, *extra), alone[:count])


def test_weight_stays_whole_when_it_is_float32(kernel: NarrowKernel) -> None:
    """No weight is rounded that was not."""
    assert kernel.pack(torch.randn(16, 32)) is None


@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(2, 2, 16), (6, 2, 64), (16, 1, 128)])
@pytest.mark.parametrize("window", [None, 5, 70])
@pytest.mark.parametrize(("start", "count"), [(0, 1), (0, 130), (101, 3), (70, 90), (1, 70)])
def test_attention_is_near_torch_when_rows_follow_each_other(
    kernel: NarrowKernel,
    heads: int,
    kv_heads: int,
    dim: int,
    window: int | None,
    start: int,
    count: int,
) -> None:
    """KV in three runs of odd lengths, half of a pair among them; one row, and many."""
    end = start + count
    pool = (torch.randn(400, kv_heads, dim).bfloat16(), torch.randn(400, kv_heads, dim).bfloat16())
    query = torch.randn(count, heads, dim).bfloat16().float()
    cut = sorted({0, end // 3, end // 2, end})
    runs = [(a + 37 * i, b + 37 * i) for i, (a, b) in enumerate(itertools.pairwise(cut))]
    slots = torch.cat([torch.arange(a, b) for a, b in runs])
    key, value = (part[slots].double().repeat_interleave(heads // kv_heads, 1) for part in pool)
    at, by = torch.arange(end)[None], torch.arange(start, end)[:, None]
    mask = (at <= by) & (at > by - (window or end))
    expected = functional.scaled_dot_product_attention(
        *(part.transpose(0, 1) for part in (query.double(), key, value)), attn_mask=mask, scale=0.25
    ).transpose(0, 1)
    actual = kernel.attend_span(query, pool, torch.tensor(runs), start, window, 0.25)
    assert error(actual, expected) < 5e-3
    if window is None:
        last = kernel.attend(
            query[-1:], pool, torch.tensor(runs), torch.tensor([0, len(runs)]), 0.25
        )
        assert error(last, expected[-1:]) < 1e-5


def test_keys_and_values_are_rounded_when_they_go_to_slots(kernel: NarrowKernel) -> None:
    """Queries and keys are rotated in float32."""
    merged, angles = torch.randn(20, 4 + 2 + 2, 16), torch.randn(20, 8)
    cos, sin = (torch.cat([part, part], -1) for part in (angles.cos(), angles.sin()))
    left, right = merged[:, :6].chunk(2, -1)
    expected = merged[:, :6] * cos[:, None] + torch.cat([-right, left], -1) * sin[:, None]
    value = merged[:, 6:].clone()
    pool = (torch.zeros(64, 2, 16).bfloat16(), torch.zeros(64, 2, 16).bfloat16())
    slots = torch.randperm(64)[:20]
    kernel.rotate(merged, cos, sin, slots, pool)
    torch.testing.assert_close(merged[:, :6], expected)
    assert torch.equal(pool[0][slots], merged[:, 4:6].bfloat16())
    assert torch.equal(pool[1][slots], value.bfloat16())


def engine_of(folder: Path) -> Engine:
    return Engine(
        EngineConfig(
            folder, dtype="bfloat16", device="cpu", block_size=4, kv_tokens=1024, num_threads=1
        )
    )


@pytest.mark.parametrize("config", MAKES)
def test_logits_are_near_transformers_when_layers_are_lean(
    kernel: NarrowKernel, make_tiny: Callable[..., Path], config: type
) -> None:
    """Cold and warm, about as near to float32 as transformers' own bfloat16."""
    plain = {} if config is not tf.MistralConfig else {"sliding_window": None}
    folder = make_tiny(config, hidden_size=64, intermediate_size=96, head_dim=16, **plain)
    engine, reference = engine_of(folder), load_reference(folder)
    assert isinstance(engine._model.module.model.layers[0], LayerStack)
    prompt = tokens(45, 1)
    own = load_reference(folder).to(torch.bfloat16)
    theirs = error(
        reference_logits(own, prompt).float(), reference_logits(reference, prompt).double()
    )
    for length in (45, 45, 44, 30, 17, 2):
        expected = reference_logits(reference, prompt[:length]).double()
        assert error(next_logits(engine, prompt[:length]), expected) < max(3 * theirs, 0.02)


def test_text_is_the_same_when_others_are_beside_it(
    kernel: NarrowKernel, make_tiny: Callable[..., Path]
) -> None:
    """Sequences that decode side by side say what each says alone."""
    folder = make_tiny(tf.LlamaConfig, hidden_size=64, intermediate_size=96, head_dim=16)
    engine = engine_of(folder)
    prompts = [tokens(n, n) for n in (2, 5, 14, 30)]
    for prompt in prompts:
        solo(engine, prompt)
    alone = [solo(engine, prompt).token_ids for prompt in prompts]
    together = drive(engine, [greedy(str(i), p) for i, p in enumerate(prompts)])
    assert [together[str(i)].token_ids for i in range(len(prompts))] == alone


def test_layers_are_torchs_when_the_cpu_has_no_bfloat16(
    make_tiny: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another CPU serves the model as before."""
    monkeypatch.setattr(narrow, "half_is_there", lambda _: False)
    assert load_kernel.__wrapped__("highest", torch.bfloat16) is None
    monkeypatch.setattr("prefix_layer.engine_parts.load_kernel", load_kernel.__wrapped__)
    folder = make_tiny(tf.LlamaConfig, hidden_size=64, intermediate_size=96, head_dim=16)
    engine = engine_of(folder)
    assert not isinstance(engine._model.module.model.layers[0], LayerStack)
    assert solo(engine, tokens(20)).finish_reason
