"""Read tensors of a safetensors file where they lie: only the rows that are touched are loaded."""

import json
import struct
from pathlib import Path

import numpy as np
import torch

_LENGTH_BYTES = 8
_MOST_HEADER_BYTES = 100_000_000
_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


class WeightFile:
    """A safetensors file of one model.

    Source: the format's description in safetensors' README: eight bytes of length, a JSON header
    of names, shapes and offsets, then the numbers.

    Raises:
        OSError: there is no such file.
        ValueError: it is no safetensors file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            head = file.read(_LENGTH_BYTES)
            if len(head) < _LENGTH_BYTES:
                raise ValueError(f"{path.name} is no safetensors file")
            (length,) = struct.unpack("<Q", head)
            if length > _MOST_HEADER_BYTES:
                raise ValueError(f"{path.name} is no safetensors file")
            self._header = json.loads(file.read(length))
        self._start = _LENGTH_BYTES + length
        self.names = tuple(name for name in self._header if name != "__metadata__")

    def read(self, name: str) -> torch.Tensor:
        """Return a tensor of its own, float32.

        Raises:
            KeyError: there is none of this name, or its numbers are of an unknown kind.
        """
        return self._view(name).to(torch.float32, copy=True)

    def mapped(self, name: str) -> torch.Tensor:
        """Return a float32 tensor that must not be written to, kept in the file if it is float32.

        Raises:
            KeyError: there is none of this name, or its numbers are of an unknown kind.
        """
        return self._view(name).to(torch.float32)

    def _view(self, name: str) -> torch.Tensor:
        entry = self._header[name]
        first, last = entry["data_offsets"]
        numbers = np.memmap(
            self._path, np.uint8, mode="c", offset=self._start + first, shape=(last - first,)
        )
        view = torch.from_numpy(numbers).view(_DTYPES[entry["dtype"]])
        return view.view(entry["shape"])
