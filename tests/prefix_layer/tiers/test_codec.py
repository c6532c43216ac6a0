"""Codecs bring back what was kept: bit by bit, or within half a step of eight bits."""

import pytest
import torch
from torch import Tensor

from prefix_layer.tiers.codec import Codec, make_codec

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
SHAPES = [(4, 2, 8), (4, 2, 8), (4, 1, 16), (4, 1, 6), (4, 3, 0)]


def views(dtype: torch.dtype, scale: float = 1.0) -> list[Tensor]:
    torch.manual_seed(0)
    return [(torch.randn(*shape) * scale).to(dtype) for shape in SHAPES]


def through(codec: Codec, kept: list[Tensor]) -> list[Tensor]:
    memory = torch.full((codec.num_bytes,), 255, dtype=torch.uint8)
    codec.encode(kept, memory)
    back = [torch.full_like(view, torch.nan) for view in kept]
    codec.decode(memory, back)
    return back


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_equal_when_nothing_is_coded(dtype: torch.dtype) -> None:
    """Layers of unlike widths, as latents and hybrids have them, come back as they were."""
    kept = views(dtype)
    assert all(map(torch.equal, kept, through(make_codec("none", kept), kept)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 200.0])
def test_error_is_half_a_step_when_coded_in_int8(dtype: torch.dtype, scale: float) -> None:
    """Each number is off by at most half of its row's step, and rounding of its own type."""
    kept = views(dtype, scale)
    codec = make_codec("int8", kept)
    assert codec.num_bytes < sum(view.numel() for view in kept) * 1.75
    for before, after in zip(kept, through(codec, kept), strict=True):
        if not before.numel():
            continue
        step = before.float().abs().amax(dim=-1, keepdim=True) / 127
        rounding = before.float().abs() * torch.finfo(dtype).eps
        assert ((before.float() - after.float()).abs() <= step * 0.5001 + rounding).all()


def test_zeros_stay_zeros_when_coded_in_int8() -> None:
    """A row without any number has no scale to divide by."""
    kept = [torch.zeros(4, 2, 8), torch.zeros(4, 2, 8)]
    assert all(map(torch.equal, kept, through(make_codec("int8", kept), kept)))
