"""JSON in the texts of a log that is written in more than one way, and one way for it. Pure.

JSON that always looks the same, such as an example of an answer, keeps its look; numbers always
keep their spelling.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

from gateway.layout.canonical import members_of

MAX_SHAPES = 10_000
MAX_BROKEN = 2000  # brackets of a text that open nothing
MAX_DEPTH = 100  # of brackets

_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_OPENS = re.compile(r"[{\[]")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


class JsonSurvey:
    """Learns how objects of each shape, that is set of keys, are written; then writes them."""

    def __init__(self) -> None:
        self._looks: dict[int, int | None] = {}  # None is more than one

    def learn(self, text: str) -> None:
        """Take one text of the log."""
        for value, written in json_values(text):
            shape = _shape(value)
            self._note(hash((shape, "keys and spaces")), _look(value, written))
            if (escapes := _escapes(written)) is not None:
                self._note(hash((shape, "escapes")), escapes)

    def _note(self, key: int, look: int) -> None:
        if key in self._looks:
            self._looks[key] = look if self._looks[key] == look else None
        elif len(self._looks) < MAX_SHAPES:
            self._looks[key] = look

    def _varies(self, shape: int) -> bool:
        keys = (hash((shape, "keys and spaces")), hash((shape, "escapes")))
        return any(self._looks.get(key, 0) is None for key in keys)

    def arrange(self, text: str) -> str:
        """Write what is written in more than one way in canonical form."""
        done = []
        at = 0
        for value, written in json_values(text):
            start = text.index(written, at)
            varies = self._varies(_shape(value))
            done += [text[at:start], canonical_text(value) if varies else written]
            at = start + len(written)
        return "".join([*done, text[at:]])


def json_values(text: str) -> Iterator[tuple[Any, str]]:
    """Give each object, and each list that holds one, and how it is written."""
    at = num_broken = 0
    while num_broken < MAX_BROKEN and (found := _OPENS.search(text, at)) is not None:
        start = found.start()
        try:
            value, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            num_broken += 1
            continue
        if _is_deep(text[start:end]):
            at = end
            continue
        if isinstance(value, dict) or any(isinstance(item, dict) for item in value):
            yield value, text[start:end]
        at = end


def without_json(text: str) -> str:
    """Return a text without the objects in it."""
    return "".join(_beside(text))


def _beside(text: str) -> Iterator[str]:
    at = 0
    for _, written in json_values(text):
        start = text.index(written, at)
        yield text[at:start]
        at = start + len(written)
    yield text[at:]


def _is_deep(written: str) -> bool:
    """Say whether brackets may open beyond `MAX_DEPTH`; those in strings count too."""
    if written.count("{") + written.count("[") <= MAX_DEPTH:
        return False
    depths = accumulate(_STEPS.get(char, 0) for char in written)
    return max(depths, default=0) > MAX_DEPTH


class _Number(str):
    """A number as it is spelt: ``15.00`` is not written as ``15``."""

    __slots__ = ()


def _refused(spelt: str) -> _Number:
    raise ValueError(f"{spelt} is no JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=members_of, parse_float=_Number, parse_int=_Number, parse_constant=_refused
)


def canonical_text(value: Any) -> str:
    """Write a value of `json_values` with sorted keys, no spaces, and text as it is."""
    return _written(value, ",", ":", sorted)


def _written(
    value: Any, comma: str, colon: str, order: Callable[[Iterable[str]], Iterable[str]]
) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        pairs = (
            f"{_text(key)}{colon}{_written(value[key], comma, colon, order)}"
            for key in order(value)
        )
        return f"{{{comma.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{comma.join(_written(item, comma, colon, order) for item in value)}]"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _paths(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}/{key}"
            yield from _paths(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{path}/*")


def _shape(value: Any) -> int:
    return hash(tuple(sorted(set(_paths(value)))))


def _look(value: Any, written: str) -> int:
    """Hash the order of keys and the way of spacing."""
    order = tuple(dict.fromkeys(_paths(value)))
    spacings = ((", ", ": "), (",", ":"))
    plain = _plain(written)
    spaced = (plain == _written(value, *marks, iter) for marks in spacings)
    return hash((order, *spaced))


def _plain(written: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), written)


def _escapes(written: str) -> int | None:
    """Tell escaped from plain text; None where there is nothing to escape."""
    if _ESCAPE.search(written):
        return 1
    return None if written.isascii() else 0
