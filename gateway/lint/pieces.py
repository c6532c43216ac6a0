"""Cuts texts into pieces that stay alike when what stands before them changes."""

import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

MIN_BAG_CHARS = 60  # a shorter text in another form costs nothing
MIN_PIECE = 24
LONG_PIECE = 240
CUT_BEHIND = 8  # one in so many words
MAX_LINE_CHARS = 8 << 20  # of the lines kept
BAG_MASK = (1 << 64) - 1

_LINE = re.compile(r"[^\n]*\n+|[^\n]+")
_END = re.compile(r"[.!?;,}\])|>]\s+|[。！？；，]|\n+")
_WORD = re.compile(r"\w+")
_SPAN = re.compile(r"[^\W\u2e80-\u9fff\uac00-\ud7ff]+\W*|.", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One message, or the tools. ``pieces`` hash its parts, ``sizes`` are their lengths in chars.

    ``key`` is equal where role and text are; ``bag`` where the words are, in any order and form.
    """

    role: str
    text: str
    key: int
    pieces: tuple[int, ...]
    sizes: tuple[int, ...]
    bag: int | None


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """``bag`` adds up over lines."""

    pieces: tuple[int, ...]
    sizes: tuple[int, ...]
    bag: int


class LineCutter:
    """Cuts texts behind sentences, items and lines; a line seen of late is cut once.

    Pieces have 24 characters and more. What has no ends is cut behind some of its words, the same
    ones whatever stands before them.
    """

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._num_chars = 0

    def turn(self, role: str, text: str) -> Turn:
        """Cut the text of a message."""
        lines = [self._lines.get(line) or self._cut(line) for line in _lines(text)]
        pieces = [piece for line in lines for piece in line.pieces]
        sizes = [size for line in lines for size in line.sizes]
        first = hash((role, text[:1]))
        pieces[:1] = [hash((first, pieces[0])) if pieces else first]
        bag = sum([line.bag for line in lines]) & BAG_MASK if len(text) >= MIN_BAG_CHARS else None
        return Turn(role, text, hash((role, text)), tuple(pieces), tuple(sizes) or (0,), bag)

    def _cut(self, line: str) -> _Line:
        parts = cut(line)
        made = _Line(tuple(map(hash, parts)), tuple(map(len, parts)), _bag_of(line))
        self._num_chars += len(line)
        if self._num_chars > MAX_LINE_CHARS:
            self._lines.clear()
            self._num_chars = len(line)
        self._lines[line] = made
        return made


def _lines(text: str) -> Iterator[str]:
    """Give the lines with what ends them; a short one goes before the next that is short."""
    short = ""
    for found in _LINE.findall(text):
        if short and len(found) >= MIN_PIECE:
            yield short
            short = ""
        line = short + found
        if len(line) < MIN_PIECE:
            short = line
        else:
            yield line
            short = ""
    if short:
        yield short


def cut(text: str) -> list[str]:
    """Cut one line, or several short ones."""
    pieces: list[str] = []
    start = 0
    for found in _END.finditer(text):
        if found.start() - start >= MIN_PIECE:
            pieces.append(text[start : found.end()])
            start = found.end()
    if start < len(text):
        pieces.append(text[start:])
    if len(text) <= LONG_PIECE:
        return pieces
    return [part for piece in pieces for part in _parts(piece)]


def _parts(piece: str) -> Iterator[str]:
    if len(piece) <= LONG_PIECE:
        yield piece
        return
    start = 0
    for word in _SPAN.finditer(piece):
        if word.end() - word.start() > LONG_PIECE:
            yield from _steps(piece, start, word.end())
            start = word.end()
        elif zlib.crc32(word[0].encode(errors="replace")) % CUT_BEHIND == 0:
            yield piece[start : word.end()]
            start = word.end()
    if start < len(piece):
        yield piece[start:]


def _steps(piece: str, start: int, end: int) -> Iterator[str]:
    """Cut what has no words into equal parts, counted from its end."""
    first = start + (end - start) % LONG_PIECE
    if first > start:
        yield piece[start:first]
    for at in range(first, end, LONG_PIECE):
        yield piece[at : at + LONG_PIECE]


def _bag_of(line: str) -> int:
    """Hash the words of a line whatever their order, form and the space between them."""
    plain = line if line.isascii() else unicodedata.normalize("NFKC", line)
    return sum(map(hash, _WORD.findall(plain.casefold())))
