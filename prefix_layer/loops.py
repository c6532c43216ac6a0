"""What the compiled products of few-bit weights share: weights, norms, and how they are called."""

import ctypes
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from native_library import function

GROUP = 32


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


class Loops(ABC):
    """A pair of loops, ``NAME_linear`` and ``NAME_gated``; tensors are float32, on the CPU.

    ``number`` tells them apart in layers.c.
    """

    number: ClassVar[int]

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self._linear = function(library, f"{name}_linear", "pp f lll i pp p i p")
        self._gated = function(library, f"{name}_gated", "pp f lll i pp p")

    def linear(
        self,
        rows: Tensor,
        weight: NarrowWeight,
        bias: Tensor | None = None,
        norm: Norm | None = None,
        add_to: Tensor | None = None,
    ) -> Tensor:
        """Return ``norm(rows) @ weight.T + bias``, (num_rows, num_outputs).

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
            self._scratch_for(count, k),
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
            self._scratch_for(count, k),
        )
        return out

    @abstractmethod
    def _scratch_for(self, count: int, k: int) -> int:
        """Return the address of room for ``count`` rows of ``k``, for one call at a time."""
