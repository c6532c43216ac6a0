"""The compiled loops compute what torch's operators compute, and lose no bit of a weight."""

import itertools
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from prefix_layer import c_library, narrow
from prefix_layer.c_library import SOURCES, load_library
from prefix_layer.loops import NarrowWeight, Norm
from prefix_layer.narrow import MAX_ROWS, NarrowKernel, load_kernel
from tests.prefix_layer.kernels import needed_kernel, weight_of


@pytest.fixture(scope="module")
def kernel() -> NarrowKernel:
    return needed_kernel()


def packed(kernel: NarrowKernel, bits: int, rows: int, columns: int) -> tuple[Tensor, NarrowWeight]:
    weight = weight_of(bits, rows, columns)
    small = kernel.pack(weight)
    assert small is not None
    assert small.bits == bits
    return weight, small


def assert_near(actual: Tensor, expected: Tensor) -> None:
    """Assert equality within float32's rounding of the largest value."""
    assert (actual.double() - expected).abs().max() < 5e-6 * expected.abs().max()


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("count", [*range(1, 10), 12, 13, 24, MAX_ROWS])
def test_product_is_exact_when_weights_have_few_bits(
    kernel: NarrowKernel, bits: int, count: int
) -> None:
    """Norm, product, bias and residual are those of float64 within float32's rounding."""
    weight, small = packed(kernel, bits, 48, 96)
    rows, bias, residual = torch.randn(count, 96), torch.randn(48), torch.randn(count, 48)
    norm = Norm(torch.rand(96), 1e-5)
    assert_near(kernel.linear(rows, small), rows.double() @ weight.double().T)
    under_norm = functional.rms_norm(rows.double(), (96,), norm.weight.double(), norm.eps)
    expected = functional.linear(under_norm, weight.double(), bias.double()) + residual
    actual = kernel.linear(rows, small, bias, norm, residual)
    assert actual.data_ptr() == residual.data_ptr()
    assert_near(actual, expected)


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_gate_equals_torch_when_rows_are_large_and_small(kernel: NarrowKernel, bits: int) -> None:
    """The activation holds at both ends of its range."""
    both, small = packed(kernel, bits, 64, 64)
    gate, up = both.double().chunk(2)
    for scale in (1e-3, 1.0, 300.0):
        rows = (torch.randn(14, 64) * scale).double()
        expected = functional.silu(rows @ gate.T) * (rows @ up.T)
        for count in (3, 14):
            assert_near(kernel.gated(rows[:count].float(), small), expected[:count])
        wide = (rows @ both.double().T).float()
        assert_near(kernel.gate(wide), expected)


@pytest.mark.parametrize("shape", [(16, 40), (24, 64)])
def test_weight_stays_whole_when_its_shape_does_not_fit(
    kernel: NarrowKernel, shape: tuple[int, int]
) -> None:
    """Sizes that are no multiple of tile or group are left to torch."""
    assert kernel.pack(torch.zeros(shape)) is None


def test_weight_stays_whole_when_one_value_needs_all_its_bits(kernel: NarrowKernel) -> None:
    """A single value off the grid, even in the last row, keeps the weight as it is."""
    for bits in (4, 8, 16):
        weight = weight_of(bits, 64, 64)
        weight[-1, -1] = 0.123456789 * weight[-1, -2] + 1e-3
        small = kernel.pack(weight)
        assert small is None or small.bits > bits
    assert kernel.pack(torch.randn(16, 32)) is None


def test_attention_equals_torch_when_kv_lies_in_runs(kernel: NarrowKernel) -> None:
    """Each row sees its own runs of slots, however they are cut, with grouped query heads."""
    pool = (torch.randn(200, 2, 32), torch.randn(200, 2, 32))
    runs = [[(3, 4)], [(0, 17), (40, 41), (60, 93)], [(100, 200)]]
    query = torch.randn(3, 6, 32)
    flat = torch.tensor([run for row in runs for run in row])
    actual = kernel.attend(query, pool, flat, torch.tensor([0, 1, 4, 5]), 0.2)
    for i, row in enumerate(runs):
        slots = torch.cat([torch.arange(*run) for run in row])
        keys, values = (part[slots].transpose(0, 1)[None] for part in pool)
        expected = functional.scaled_dot_product_attention(
            query[i][None, :, None], keys, values, scale=0.2, enable_gqa=True
        )
        torch.testing.assert_close(actual[i], expected[0, :, 0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 2), (6, 2), (16, 1)])
@pytest.mark.parametrize("window", [None, 5, 70])
@pytest.mark.parametrize(("start", "count"), [(0, 1), (0, 130), (101, 3), (70, 90)])
def test_attention_equals_torch_when_rows_follow_each_other(
    kernel: NarrowKernel, heads: int, kv_heads: int, window: int | None, start: int, count: int
) -> None:
    """A prompt's chunk sees what is before it and itself, whatever its slots."""
    end = start + count
    cuts = sorted({0, end // 3, end // 2, end})
    pairs = itertools.pairwise(cuts)
    places = [(40 * i + begin + 3, 40 * i + last + 3) for i, (begin, last) in enumerate(pairs)]
    pool = (torch.randn(400, kv_heads, 32), torch.randn(400, kv_heads, 32))
    query = torch.randn(count, heads, 32)
    actual = kernel.attend_span(query, pool, torch.tensor(places), start, window, 0.3)
    slots = torch.cat([torch.arange(*place) for place in places])
    keys, values = (part[slots].transpose(0, 1)[None] for part in pool)
    rows, seen = torch.arange(start, end)[:, None], torch.arange(end)[None]
    mask = (seen <= rows) & (seen > rows - (window or end))
    expected = functional.scaled_dot_product_attention(
        query.transpose(0, 1)[None], keys, values, attn_mask=mask, scale=0.3, enable_gqa=True
    )
    torch.testing.assert_close(actual, expected[0].transpose(0, 1), rtol=1e-5, atol=1e-5)


def test_attention_gives_nan_when_a_key_is_nan(kernel: NarrowKernel) -> None:
    """A broken value is never smoothed away."""
    pool = (torch.full((4, 1, 16), float("nan")), torch.zeros(4, 1, 16))
    out = kernel.attend(
        torch.ones(1, 1, 16), pool, torch.tensor([(0, 4)]), torch.tensor([0, 1]), 1.0
    )
    assert out.isnan().all()


@pytest.mark.parametrize("count", [1, 20])
def test_positions_equal_torch_when_keys_go_to_slots(kernel: NarrowKernel, count: int) -> None:
    """Queries and keys are rotated in place, keys and values stand in their slots."""
    merged, angles = torch.randn(count, 4 + 2 + 2, 16), torch.randn(count, 8)
    cos, sin = (torch.cat([part, part], -1) for part in (angles.cos(), angles.sin()))
    left, right = merged[:, :6].chunk(2, -1)
    turned = torch.cat([-right, left], -1)
    expected = merged[:, :6] * cos[:, None] + turned * sin[:, None]
    value = merged[:, 6:].clone()
    pool = (torch.zeros(64, 2, 16), torch.zeros(64, 2, 16))
    slots = torch.randperm(64)[:count]
    kernel.rotate(merged, cos, sin, slots, pool)
    torch.testing.assert_close(merged[:, :6], expected)
    torch.testing.assert_close(pool[0][slots], expected[:, 4:])
    assert torch.equal(pool[1][slots], value)


def test_library_is_none_when_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a compiler, or with a broken one, goes on without."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert load_library.__wrapped__() is None
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/false")
    assert load_library.__wrapped__() is None


def test_sources_are_beside_the_module_when_installed() -> None:
    """The C files travel with the package."""
    for name in (*SOURCES, "vectors.h"):
        assert (Path(c_library.__file__).with_name(name)).is_file()


def test_products_are_float32_when_the_cpu_has_no_fixed_point(
    kernel: NarrowKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``high`` is a wish: a CPU without AVX-512 VNNI takes the exact loops."""
    monkeypatch.setattr(narrow, "fixed_is_there", lambda _: False)
    wished = load_kernel.__wrapped__("high")
    weight = weight_of(8, 48, 96)
    rows, small = torch.randn(5, 96), kernel.pack(weight)
    assert wished is not None
    assert small is not None
    assert wished.max_rows(small) == kernel.max_rows(small)
    assert torch.equal(wished.linear(rows, small), kernel.linear(rows, small))
