"""Compiled loops for tests, weights laid out for them, and how far their products are off."""

import pytest
import torch
from torch import Tensor

from prefix_layer.loops import NarrowWeight
from prefix_layer.narrow import NarrowKernel, Precision, load_kernel


def needed_kernel(
    precision: Precision = "highest", dtype: torch.dtype = torch.float32
) -> NarrowKernel:
    """Return the loops; the test is left out, by name, where nothing compiles them."""
    loaded = load_kernel(precision, dtype)
    if loaded is None:
        pytest.skip("no C compiler here")
    return loaded


def weight_of(bits: int, rows: int, columns: int) -> Tensor:
    """Make a random weight that so many bits can hold."""
    generator = torch.Generator().manual_seed(bits)
    if bits > 8:
        return torch.randn(rows, columns, generator=generator).bfloat16().float()
    low, high = (0, 15) if bits == 4 else (-127, 127)
    q = torch.randint(low, high + 1, (rows, columns // 32, 32), generator=generator)
    q[..., 0], q[..., 1] = low, high
    scale = torch.rand(rows, columns // 32, 1, generator=generator) + 0.1
    offset = torch.randn(rows, columns // 32, 1, generator=generator) if bits == 4 else 0
    return (q * scale + offset).view(rows, columns)


def packed(kernel: NarrowKernel, weight: Tensor, most_rows: int) -> tuple[Tensor, NarrowWeight]:
    """Return a weight in float64, and laid out for more than so many rows."""
    small = kernel.pack(weight)
    assert small is not None
    assert kernel.max_rows(small) > most_rows
    return weight.double(), small


def error(actual: Tensor, expected: Tensor) -> float:
    """Return how far a result is off, relative to its size."""
    return float((actual.double() - expected).norm() / expected.norm())
