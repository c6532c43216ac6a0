"""JSON in the texts of a log that is written in more than one way, and one way for it. Pure.

JSON that always looks the same, such as an example of an answer, keeps its look.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from gateway.layout import canonical_json

MAX_SHAPES = 10_000
MAX_BROKEN = 2000  # brackets of a text that open nothing

_OPENS = re.compile(r"[{\[]")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


class JsonSurvey:
    """Learns how objects of each shape, that is set of keys, are written; then writes them."""

    def __init__(self) -> None:
        self._looks: dict[int, int | None] = {}  # None is more than one

    def learn(self, text: str) -> None:
        """Take one text of the log."""
        for value, written in _values(text):
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
        for value, written in _values(text):
            start = text.index(written, at)
            varies = self._varies(_shape(value))
            done += [text[at:start], canonical_json(value) if varies else written]
            at = start + len(written)
        return "".join([*done, text[at:]])


def _values(text: str) -> Iterator[tuple[Any, str]]:
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
        if isinstance(value, dict) or any(isinstance(item, dict) for item in value):
            yield value, text[start:end]
        at = end


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice")
    return made


def _exact(spelt: str) -> float:
    number = float(spelt)
    if repr(number) != spelt or number.is_integer():
        raise ValueError("the number would be spelt otherwise")
    return number


def _refused(spelt: str) -> float:
    raise ValueError(f"{spelt} is no JSON")


# what could not be written again as it was is left alone
_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=_exact, parse_constant=_refused)


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
    spaced = (plain == json.dumps(value, ensure_ascii=False, separators=s) for s in spacings)
    return hash((order, *spaced))


def _plain(written: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), written)


def _escapes(written: str) -> int | None:
    """Tell escaped from plain text; None where there is nothing to escape."""
    if _ESCAPE.search(written):
        return 1
    return None if written.isascii() else 0
