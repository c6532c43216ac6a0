"""Products in fixed point: near the true ones, and the same whatever rows are beside a row."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers as tf
from torch.nn import functional

from prefix_layer.fixed import FIXED_BITS
from prefix_layer.int8 import round_weights
from prefix_layer.loops import Norm
from prefix_layer.narrow import NarrowKernel
from tests.prefix_layer.driving import load_reference, make_engine, next_logits, reference_logits
from tests.prefix_layer.kernels import error, needed_kernel, packed, weight_of

PROMPT = list(range(40, 75))
pytestmark = pytest.mark.cpu_flag("avx512_vnni")
COUNTS = (1, 2, 3, 4, 5, 7, 8, 9, 24, 61)


@pytest.fixture(scope="module")
def kernel() -> NarrowKernel:
    loaded = needed_kernel("high")
    assert loaded._others
    return loaded


@pytest.mark.parametrize("bits", FIXED_BITS)
@pytest.mark.parametrize("count", COUNTS)
def test_product_has_sixteen_bits_when_rows_are_any_number(
    kernel: NarrowKernel, bits: int, count: int
) -> None:
    """Norm, product, bias and residual are those of float64 but for 2^-15; 3 tiles are no pair."""
    weight, small = packed(kernel, weight_of(bits, 48, 96), max(COUNTS))
    rows, bias, residual = torch.randn(count, 96), torch.randn(48), torch.randn(count, 48)
    assert error(kernel.linear(rows, small), rows.double() @ weight.T) < 5e-5
    norm = Norm(torch.rand(96), 1e-5)
    under_norm = functional.rms_norm(rows.double(), (96,), norm.weight.double(), norm.eps)
    expected = functional.linear(under_norm, weight, bias.double()) + residual
    actual = kernel.linear(rows, small, bias, norm, residual)
    assert actual.data_ptr() == residual.data_ptr()
    assert error(actual, expected) < 5e-5


@pytest.mark.parametrize("bits", FIXED_BITS)
def test_gate_has_sixteen_bits_when_rows_are_large_and_small(
    kernel: NarrowKernel, bits: int
) -> None:
    """The activation holds at both ends of its range."""
    both, small = packed(kernel, weight_of(bits, 64, 64), max(COUNTS))
    gate, up = both.chunk(2)
    for scale in (1e-3, 1.0, 300.0):
        rows = (torch.randn(11, 64) * scale).double()
        expected = functional.silu(rows @ gate.T) * (rows @ up.T)
        assert error(kernel.gated(rows.float(), small), expected) < 1e-4


@pytest.mark.parametrize("bits", FIXED_BITS)
def test_rows_are_the_same_to_the_bit_when_others_are_beside_them(
    kernel: NarrowKernel, bits: int
) -> None:
    """One row, a few and many give what each row gives alone."""
    _, small = packed(kernel, weight_of(bits, 96, 64), max(COUNTS))
    rows, norm = torch.randn(61, 64), Norm(torch.rand(64), 1e-5)
    for compute in (kernel.linear, kernel.gated):
        extra = (None, norm) if compute == kernel.linear else (norm,)
        alone = torch.cat([compute(row[None], small, *extra) for row in rows])
        for count in COUNTS:
            assert torch.equal(compute(rows[:count], small, *extra), alone[:count])


def test_only_the_sick_row_is_nan_when_one_is_not_finite(kernel: NarrowKernel) -> None:
    """What is not a number stays none, zeros and tiny values give zeros."""
    _, small = packed(kernel, weight_of(4, 32, 32), max(COUNTS))
    rows = torch.randn(5, 32)
    rows[1, 7], rows[2, 3], rows[3], rows[4] = torch.nan, torch.inf, 0, 1e-39
    finite = kernel.linear(rows, small).isfinite()
    assert finite.all(dim=1).tolist() == [True, False, False, True, True]
    assert not finite[1:3].any()
    assert kernel.linear(rows, small)[3].abs().max() == 0


def test_logits_tell_the_precision_when_it_is_asked_for(
    kernel: NarrowKernel, make_tiny: Callable[..., Path]
) -> None:
    """``highest`` is float32's own, ``high`` within 1e-3 of it; their KV is not shared."""
    folder = make_tiny(tf.LlamaConfig, hidden_size=64, intermediate_size=96, head_dim=16)
    engines = {p: make_engine(folder, weights="int8", precision=p) for p in ("high", "highest")}
    logits = {name: next_logits(engine, PROMPT) for name, engine in engines.items()}
    rounded = load_reference(folder)
    round_weights(rounded, kernel)
    expected = reference_logits(rounded, PROMPT).double()
    assert error(logits["highest"], expected) < 1e-5
    assert 1e-6 < error(logits["high"], expected) < 1e-3
    fingerprints = {engine.ready.model_fingerprint for engine in engines.values()}
    assert len(fingerprints) == len(engines)
