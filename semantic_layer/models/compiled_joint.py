"""A joint encoder's upper half in one call of compiled loops; see joint.c. Knows no files.

Beside torch's small operators it gives the interpreter away but once, and rounds the same whatever
the number of torch's threads.
"""

import ctypes
from collections.abc import Sequence

from native_library import function
from semantic_layer.models.compiled_layers import (
    MOST_TOKENS,
    TILE,
    CompiledLayers,
    filled_up,
    load_library,
)
from semantic_layer.models.joint_layers import HEADS, ReadPair
from semantic_layer.models.stacked_layers import Layers
from semantic_layer.models.weight_delta import Tensors

_WEIGHT = ctypes.c_void_p * 3  # smoothing, tiles, bias


class _Text(ctypes.Structure):
    _fields_ = (
        ("states", ctypes.c_void_p),
        ("ids", ctypes.c_void_p),
        ("length", ctypes.c_long),
    )


class _Joint(ctypes.Structure):
    _fields_ = (
        *((name, _WEIGHT) for name in HEADS),
        ("marks", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("faced", "found", "mixed", "scored")),
    )


class CompiledJoint:
    """Scores pairs of texts that were read; see `TorchJoint`.

    Thread-safe, and free of the interpreter lock while it works.
    """

    def __init__(self, library: ctypes.CDLL, tensors: Tensors, upper: CompiledLayers) -> None:
        self._score = function(library, "joint_score", "pp pl p")
        self._upper = upper
        self._marks = tensors["marks.weight"].float().contiguous()
        self._kept = {
            name: filled_up(tensors[f"{name}.weight"], tensors[f"{name}.bias"]) for name in HEADS
        }
        faced, mixed = (self._kept[name][0].shape[0] for name in ("align", "mix"))
        found, scored = (self._kept[name][2].shape[0] for name in ("doubts", "out"))
        weights = (_WEIGHT(*(tensor.data_ptr() for tensor in self._kept[name])) for name in HEADS)
        self._joint = _Joint(*weights, self._marks.data_ptr(), faced, found, mixed, scored)

    def __call__(self, pairs: Sequence[ReadPair]) -> list[float]:
        """Return the raw score of each pair.

        Raises:
            RuntimeError: there is no memory, or a pair is longer than any model's window.
        """
        reads = [read for pair in pairs for read in pair]
        texts = (_Text * len(reads))(
            *(_Text(r.states.data_ptr(), r.ids.data_ptr(), len(r.ids)) for r in reads)
        )
        scores = (ctypes.c_float * len(pairs))()
        longest = max(len(one.ids) + len(other.ids) for one, other in pairs)
        if longest > MOST_TOKENS or self._score(
            ctypes.byref(self._joint), ctypes.byref(self._upper.stack), texts, len(pairs), scores
        ):
            raise RuntimeError(f"{longest} tokens can't be scored")
        return list(scores)


def compiled_joint(tensors: Tensors, upper: Layers) -> CompiledJoint | None:
    """Return the upper half compiled; None where its layers are not, or the sizes are odd."""
    library = load_library()
    if library is None or not isinstance(upper, CompiledLayers):
        return None
    return None if len(tensors["doubts.bias"]) % TILE else CompiledJoint(library, tensors, upper)
