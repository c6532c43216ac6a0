"""Our C loops for products and attention, where the machine has a compiler.

A decode step is bound by reading weights: these loops read them in the bits they really have, which
torch's operators can't in float32. Without a compiler everything runs on torch's own.

Source: our measurement, SmolLM2 float32 on 2 cores: a decode step's products take 20 ms in oneDNN,
4 ms here; torch's own 4- and 8-bit products take 24 to 100 ms a layer when activations are float32.
"""

import ctypes
import functools
import sys
from typing import Literal

import torch
from torch import Tensor

from native_library import function
from prefix_layer.c_library import load_library
from prefix_layer.fixed import FIXED_BITS, FixedKernel, fixed_is_there
from prefix_layer.half import HALF_BITS, HalfKernel, half_is_there
from prefix_layer.loops import GROUP, Loops, NarrowWeight, Norm

MAX_ROWS = 48
LANES = 16
BITS = (4, 8, 16)
MAX_HEAD_DIM = 128

Precision = Literal["high", "highest"]


class NarrowKernel(Loops):
    """The compiled loops; all tensors are float32, contiguous and on the CPU.

    Only weights, keys and values are of ``dtype``, bfloat16 where ``half`` is given.
    """

    number = 0

    def __init__(
        self,
        library: ctypes.CDLL,
        fixed: FixedKernel | None = None,
        half: HalfKernel | None = None,
    ) -> None:
        super().__init__(library, "narrow")
        self.library = library
        self.dtype = torch.float32 if half is None else torch.bfloat16
        self._bits = BITS if half is None else (HALF_BITS,)
        self._others: dict[int, Loops] = {}
        if fixed is not None:
            self._others.update(dict.fromkeys(FIXED_BITS, fixed))
        if half is not None:
            self._others[HALF_BITS] = half
        kept = "narrow" if half is None else "half"
        self._scratch = torch.empty(0)
        self._norm = function(library, "narrow_norm", "pp f ll p")
        self._gate = function(library, "narrow_gate", "p ll p")
        self._rotate = function(library, f"{kept}_rotate", "ppp llll p pp")
        self._attend = function(library, f"{kept}_attend", "p l llll pp pp f p")
        self._attend_span = function(library, f"{kept}_attend_span", "p l llll pp p lll f p")
        self._pack = function(library, "narrow_pack", "p ll i p")

    def max_rows(self, weight: NarrowWeight) -> int:
        """Return for how many rows `linear` and `gated` are made."""
        return MAX_ROWS if self.loops_for(weight) is self else sys.maxsize

    def pack(self, weight: Tensor) -> NarrowWeight | None:
        """Return the weight in the fewest bits that keep every value, None when it needs all."""
        rows, columns = weight.shape
        if weight.dtype != self.dtype or rows % LANES or columns % GROUP:
            return None
        weight = weight.detach().float().contiguous()
        for bits in self._bits:
            if self._try_pack(weight[:LANES], bits) is None:
                continue
            words = self._try_pack(weight, bits)
            if words is not None:
                return NarrowWeight(words, rows, columns, bits)
        return None

    def linear(
        self,
        rows: Tensor,
        weight: NarrowWeight,
        bias: Tensor | None = None,
        norm: Norm | None = None,
        add_to: Tensor | None = None,
    ) -> Tensor:
        """Return ``norm(rows) @ weight.T + bias``, (num_rows, num_outputs); up to `max_rows` rows.

        ``add_to`` is added to in place and returned.
        """
        loops = self.loops_for(weight)
        if loops is not self:
            return loops.linear(rows, weight, bias, norm, add_to)
        return super().linear(rows, weight, bias, norm, add_to)

    def gated(self, rows: Tensor, weight: NarrowWeight, norm: Norm | None = None) -> Tensor:
        """Return ``silu(gate(norm(rows))) * up(norm(rows))``; the weight is gate's, then up's."""
        loops = self.loops_for(weight)
        return (
            super().gated(rows, weight, norm) if loops is self else loops.gated(rows, weight, norm)
        )

    def norm(self, rows: Tensor, norm: Norm) -> Tensor:
        """Return ``norm(rows)`` for any number of rows."""
        out = torch.empty_like(rows)
        count, k = rows.shape
        self._norm(rows.data_ptr(), norm.weight.data_ptr(), norm.eps, count, k, out.data_ptr())
        return out

    def gate(self, rows: Tensor) -> Tensor:
        """Return ``silu(left half) * right half`` of each row, for any number of rows."""
        count, width = rows.shape
        out = rows.new_empty(count, width // 2)
        self._gate(rows.data_ptr(), count, width // 2, out.data_ptr())
        return out

    def rotate(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, slots: Tensor, pool: tuple[Tensor, Tensor]
    ) -> None:
        """Give queries and keys their positions in place; copy keys and values to the pool.

        ``qkv`` (rows, num_heads + 2 * num_kv_heads, head_dim), ``cos``, ``sin`` (rows, head_dim).
        """
        keys, values = pool
        rows, heads, dim = qkv.shape
        self._rotate(
            *(qkv.data_ptr(), cos.data_ptr(), sin.data_ptr()),
            *(rows, heads - 2 * keys.shape[1], keys.shape[1], dim),
            *(slots.data_ptr(), keys.data_ptr(), values.data_ptr()),
        )

    def attend(
        self,
        query: Tensor,
        pool: tuple[Tensor, Tensor],
        runs: Tensor,
        bounds: Tensor,
        scale: float,
    ) -> Tensor:
        """Attend with one row of each of several sequences; returns (rows, num_heads, head_dim).

        ``query`` (rows, num_heads, head_dim) may have a wider row stride. Row i sees the slots of
        runs ``bounds[i]`` to ``bounds[i + 1]``, ``runs`` being (num_runs, 2) int64.
        """
        keys, values = pool
        rows, heads, dim = query.shape
        out = query.new_empty(rows, heads, dim)
        self._attend(
            *(query.data_ptr(), query.stride(0), rows, heads, keys.shape[1], dim),
            *(keys.data_ptr(), values.data_ptr(), runs.data_ptr(), bounds.data_ptr()),
            *(scale, out.data_ptr()),
        )
        return out

    def attend_span(
        self,
        query: Tensor,
        pool: tuple[Tensor, Tensor],
        runs: Tensor,
        start: int,
        window: int | None,
        scale: float,
    ) -> Tensor:
        """Attend with consecutive rows of one sequence, the first at position ``start``.

        As `attend`, but each row sees all slots of ``runs`` up to its own position, or the last
        ``window`` of these.
        """
        keys, values = pool
        rows, heads, dim = query.shape
        out = query.new_empty(rows, heads, dim)
        self._attend_span(
            *(query.data_ptr(), query.stride(0), rows, heads, keys.shape[1], dim),
            *(keys.data_ptr(), values.data_ptr(), runs.data_ptr(), len(runs)),
            *(start, window or 0, scale, out.data_ptr()),
        )
        return out

    def loops_for(self, weight: NarrowWeight) -> Loops:
        """Return the loops that products with this weight take."""
        return self._others.get(weight.bits, self)

    def _scratch_for(self, _: int, k: int) -> int:
        """Return the address of room for as many rows of ``k`` as fit, and their sums."""
        if self._scratch.numel() < MAX_ROWS * (k + k // GROUP):
            self._scratch = torch.empty(MAX_ROWS * (k + k // GROUP))
        return self._scratch.data_ptr()

    def _try_pack(self, weight: Tensor, bits: int) -> Tensor | None:
        rows, columns = weight.shape
        extra = 2 if bits < BITS[-1] else 0
        size = rows * (columns // GROUP) * (GROUP * bits // 32 + extra)
        words = torch.zeros(size, dtype=torch.int32)
        fits = self._pack(weight.data_ptr(), rows, columns, bits, words.data_ptr())
        return words if fits else None


@functools.cache
def load_kernel(
    precision: Precision = "highest", dtype: torch.dtype = torch.float32
) -> NarrowKernel | None:
    """Return the loops for a model, None when this machine can't compile or run them.

    ``high`` is as `FixedKernel` is, bfloat16 as `HalfKernel`.
    """
    library = load_library()
    if library is None or dtype not in (torch.float32, torch.bfloat16):
        return None
    if dtype == torch.bfloat16:
        return NarrowKernel(library, half=HalfKernel(library)) if half_is_there(library) else None
    fixed = FixedKernel(library) if precision == "high" and fixed_is_there(library) else None
    return NarrowKernel(library, fixed)
