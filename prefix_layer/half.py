"""Products of 16-bit weights with rows rounded to 16 bits too (half.c): what bfloat16 asks for.

Sums are float32; a row's result is the same to the bit whatever rows are beside it. Needs AVX-512
BF16.

Source: our measurement, SmolLM2 on 2 cores, in tests/bench/LOG.md.
"""

import ctypes

import torch

from native_library import function
from prefix_layer.loops import Loops

HALF_BITS = 16


class HalfKernel(Loops):
    """The compiled loops."""

    number = 2

    def __init__(self, library: ctypes.CDLL) -> None:
        super().__init__(library, "half")
        self._scratch = torch.empty(0, dtype=torch.bfloat16)

    def _scratch_for(self, count: int, k: int) -> int:
        """Return the address of room for the rounded rows."""
        if self._scratch.numel() < count * k:
            self._scratch = torch.empty(count * k, dtype=torch.bfloat16)
        return self._scratch.data_ptr()


def half_is_there(library: ctypes.CDLL) -> bool:
    """Say whether the machine has the instructions for it."""
    return bool(function(library, "half_is_there", "")())
