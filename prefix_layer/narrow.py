"""Our few C loops for steps of a few rows (narrow.c), compiled where the machine has a compiler.

A decode step is bound by reading weights: these loops read them in the bits they really have, which
torch's operators can't in float32. Without a compiler everything runs on torch's own.

Source: our measurement, SmolLM2 float32 on 2 cores: a decode step's products take 20 ms in oneDNN,
4 ms here; torch's own 4- and 8-bit products take 24 to 100 ms a layer when activations are float32.
"""

import ctypes
import functools
import logging
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

MAX_ROWS = 8
LANES = 16
GROUP = 32
BITS = (4, 8, 16)
MAX_HEAD_DIM = 128
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-w")
_COMPILE_S = 60

log = logging.getLogger("strata.engine")


@dataclass(frozen=True, slots=True)
class NarrowWeight:
    """A weight (num_outputs, num_inputs) in as few bits as it has; layout as in narrow.c."""

    words: Tensor
    num_outputs: int
    num_inputs: int
    bits: int


@dataclass(frozen=True, slots=True)
class Norm:
    """A root-mean-square norm to be taken of the rows first."""

    weight: Tensor
    eps: float


class NarrowKernel:
    """The compiled loops; all tensors are float32, contiguous and on the CPU."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._scratch = torch.empty(0)
        self._linear = _function(library, "narrow_linear", "pp f lll i pp p i p")
        self._gated = _function(library, "narrow_gated", "pp f lll i pp p")
        self._norm = _function(library, "narrow_norm", "pp f ll p")
        self._gate = _function(library, "narrow_gate", "p ll p")
        self._rotate = _function(library, "narrow_rotate", "ppp llll p pp")
        self._attend = _function(library, "narrow_attend", "p l llll pp pp f p")
        self._attend_span = _function(library, "narrow_attend_span", "p l llll pp p lll f p")
        self._pack = _function(library, "narrow_pack", "p ll i p")

    def pack(self, weight: Tensor) -> NarrowWeight | None:
        """Return the weight in the fewest bits that keep every value, None when it needs all."""
        rows, columns = weight.shape
        if weight.dtype != torch.float32 or rows % LANES or columns % GROUP:
            return None
        weight = weight.detach().contiguous()
        for bits in BITS:
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
        """Return ``norm(rows) @ weight.T + bias``, (num_rows, num_outputs); up to `MAX_ROWS` rows.

        ``add_to`` is added to in place and returned.
        """
        count, k = rows.shape
        out = rows.new_empty(count, weight.num_outputs) if add_to is None else add_to
        self._linear(
            rows.data_ptr(),
            None if norm is None else norm.weight.data_ptr(),
            0.0 if norm is None else norm.eps,
            count,
            weight.num_outputs,
            k,
            weight.bits,
            weight.words.data_ptr(),
            None if bias is None else bias.data_ptr(),
            out.data_ptr(),
            add_to is not None,
            self._scratch_for(k),
        )
        return out

    def gated(self, rows: Tensor, weight: NarrowWeight, norm: Norm | None = None) -> Tensor:
        """Return ``silu(gate(norm(rows))) * up(norm(rows))``; the weight is gate's, then up's."""
        count, k = rows.shape
        out = rows.new_empty(count, weight.num_outputs // 2)
        self._gated(
            rows.data_ptr(),
            None if norm is None else norm.weight.data_ptr(),
            0.0 if norm is None else norm.eps,
            count,
            out.shape[1],
            k,
            weight.bits,
            weight.words.data_ptr(),
            out.data_ptr(),
            self._scratch_for(k),
        )
        return out

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

    def _scratch_for(self, k: int) -> int:
        """Return the address of room for rows of ``k`` and their sums, for one call at a time."""
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
def load_kernel() -> NarrowKernel | None:
    """Compile the loops, once per process; None when this machine can't."""
    compiler = next((path for name in _COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        log.info("no C compiler: decode steps run on torch's operators alone")
        return None
    source = Path(__file__).with_suffix(".c")
    with tempfile.TemporaryDirectory(prefix="strata-") as folder:
        built = Path(folder) / "narrow.so"
        command = [compiler, *_FLAGS, str(source), "-o", str(built), "-lm"]
        try:
            subprocess.run(  # noqa: S603  a compiler found on the path, our own source
                command,
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMPILE_S,
            )
            return NarrowKernel(ctypes.CDLL(str(built)))
        except (OSError, subprocess.SubprocessError) as error:
            log.info("narrow.c can't be compiled (%s): decode steps run on torch alone", error)
            return None


_TYPES: dict[str, Any] = {
    "p": ctypes.c_void_p,
    "l": ctypes.c_long,
    "i": ctypes.c_int,
    "f": ctypes.c_float,
}


def _function(library: ctypes.CDLL, name: str, arguments: str) -> "ctypes._NamedFuncPointer":
    function = library[name]
    function.argtypes = [_TYPES[letter] for letter in arguments.replace(" ", "")]
    function.restype = ctypes.c_int
    return function
