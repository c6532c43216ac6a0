"""Products of few-bit weights with any number of rows, in fixed point (fixed.c).

Each 32 values of a row share a scale and have 16 bits, what torch calls float32 products of "high"
precision; sums of 32 are exact, sums of those float32. A row's result is the same to the bit
whatever rows are beside it. Needs AVX-512 VNNI.

Source: our measurement, SmolLM2 on 2 cores, in tests/bench/LOG.md; for the word "high",
torch.set_float32_matmul_precision.
"""

import ctypes

import torch

from native_library import function
from prefix_layer.loops import GROUP, Loops

FIXED_BITS = (4, 8)
_BYTES_PER_GROUP = 2 * GROUP + 12


class FixedKernel(Loops):
    """The compiled loops in fixed point."""

    number = 1

    def __init__(self, library: ctypes.CDLL) -> None:
        super().__init__(library, "fixed")
        self._scratch = torch.empty(0, dtype=torch.uint8)

    def _scratch_for(self, count: int, k: int) -> int:
        """Return the address of room for the rows in fixed point."""
        num_bytes = count * (k // GROUP) * _BYTES_PER_GROUP
        if self._scratch.numel() < num_bytes:
            self._scratch = torch.empty(num_bytes, dtype=torch.uint8)
        return self._scratch.data_ptr()


def fixed_is_there(library: ctypes.CDLL) -> bool:
    """Say whether the machine has the instructions for it."""
    return bool(function(library, "fixed_is_there", "")())
