"""A prompt as turns, each cut into pieces that stay alike when what stands before them changes."""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gateway.lint.logged import Logged, Row

TOOLS = "tools"
MIN_BAG_CHARS = 60  # a shorter text in another form costs nothing
MIN_PIECE = 24
LONG_PIECE = 240
CUT_BEHIND = 8  # one in so many words
MAX_CACHED_CHARS = 16 << 20

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
class Turns:
    """A prompt: ``fields`` name where the turns stand in their row."""

    turns: tuple[Turn, ...]
    fields: tuple[str, ...]
    num_chars: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_chars", sum(len(turn.text) for turn in self.turns))

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Give hash and length of every piece, in order."""
        for turn in self.turns:
            yield from zip(turn.pieces, turn.sizes, strict=True)


class TurnMaker:
    """Makes turns; those seen of late are made once."""

    def __init__(self) -> None:
        self._young: dict[tuple[str, str], Turn] = {}
        self._old: dict[tuple[str, str], Turn] = {}
        self._num_chars = 0

    def turns(self, logged: Logged) -> Turns:
        """Cut a request up; the tools stand behind the system prompt, as templates put them."""
        made = [self._turn(_role(message), _text(message)) for message in logged.messages]
        fields = list(logged.fields)
        if logged.tools:
            at = 1 if made[0].role == "system" else 0
            made.insert(at, self._turn(TOOLS, "\n".join(map(_dump, logged.tools))))
            fields.insert(at, logged.tools_field)
        return Turns(tuple(made), tuple(fields))

    def _turn(self, role: str, text: str) -> Turn:
        key = (role, text)
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key) or make_turn(role, text)
            self._young[key] = found
            self._num_chars += len(text)
            if self._num_chars > MAX_CACHED_CHARS:
                self._old, self._young, self._num_chars = self._young, {}, 0
        return found


def make_turn(role: str, text: str) -> Turn:
    """Cut a text into pieces."""
    parts = cut(text)
    first = hash((role, text[:1]))
    pieces = tuple(hash(part) for part in parts)
    pieces = (hash((first, pieces[0])), *pieces[1:]) if pieces else (first,)
    sizes = tuple(map(len, parts)) or (0,)
    return Turn(role, text, hash((role, text)), pieces, sizes, bag_of(text))


def cut(text: str) -> list[str]:
    """Cut a text behind sentences, items and lines, into pieces of 24 characters and more.

    What has none is cut behind some of its words, the same ones whatever stands before them.
    """
    pieces: list[str] = []
    start = 0
    for found in _END.finditer(text):
        if found.start() - start >= MIN_PIECE:
            pieces.append(text[start : found.end()])
            start = found.end()
    if start < len(text):
        pieces.append(text[start:])
    if len(text) <= LONG_PIECE or max(map(len, pieces)) <= LONG_PIECE:
        return pieces
    return [part for piece in pieces for part in _parts(piece)]


def _parts(piece: str) -> Iterator[str]:
    if len(piece) <= LONG_PIECE:
        yield piece
        return
    start = 0
    for word in _SPAN.finditer(piece):
        if zlib.crc32(word[0].encode(errors="replace")) % CUT_BEHIND == 0:
            yield piece[start : word.end()]
            start = word.end()
    if start < len(piece):
        yield piece[start:]


def bag_of(text: str) -> int | None:
    """Hash the words of a text whatever their order, form and the space between them."""
    if len(text) < MIN_BAG_CHARS:
        return None
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return hash(tuple(sorted(_WORD.findall(plain.casefold()))))


def content_text(content: Any) -> str:
    """Return the text of a message's content; what is no text counts as its JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    parts = content if isinstance(content, Sequence) else [content]
    return "".join(map(_part_text, parts))


def _part_text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else _dump(part)


def _role(message: Row) -> str:
    return "system" if message["role"] == "developer" else str(message["role"])


def _text(message: Row) -> str:
    text = content_text(message.get("content"))
    calls = message.get("tool_calls") or message.get("function_call")
    return f"{text}\n{_dump(calls)}" if calls else text


def _dump(value: Any) -> str:
    return msgspec.json.encode(value).decode()
