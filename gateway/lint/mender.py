"""Mends the requests of a log as its findings say, without changing what they ask. Pure.

Lines of a system prompt that change go behind everything else; equal texts there are written as the
first of them. Tools get one order, and so do chunks and examples, and the keys of JSON that a
program wrote: in system prompts and tools' results. Of what a user wrote only passages move, as
`passages` tells them, and of what a model wrote nothing does. History, wording and lists are left
to their author.
"""

import copy
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from gateway.errors import BadRequest
from gateway.layout import canonical_tools
from gateway.lint.block_survey import BlockSurvey
from gateway.lint.finding import Finding
from gateway.lint.json_survey import JsonSurvey
from gateway.lint.linter import LEAD_CHARS
from gateway.lint.logged import Logged, Row, read_logged, texts_at
from gateway.lint.order import Cut, cut_lines, cut_paragraphs
from gateway.lint.passages import may_move
from gateway.lint.turn import content_text

MENDED = frozenset(
    {
        "timestamp", "uuid", "identifier", "number", "whitespace", "unicode_form", "letter_case",
        "json_key_order", "json_format", "tool_order", "retrieval_order", "few_shot_order",
    }
)  # fmt: skip
MOVED = ("timestamp", "uuid", "identifier", "number")
ORDERED = ("retrieval_order", "few_shot_order")
SPELT = ("whitespace", "unicode_form", "letter_case")
KEYED = ("json_key_order", "json_format")
BY_PROGRAMS = ("system", "tool", "function")
BY_USERS = ("user", "prompt")
MAX_LINE_CHARS = 240  # a longer line is no fact of its own
MAX_FORMS = 10_000
MAX_BETWEEN = 16  # characters between a label and the digits behind it, as of a month

_VARIES = re.compile(r"[0-9a-fA-F-]{6,}|\d+")
_CHANGES = re.compile(r"[A-Za-z_]*\d[A-Za-z0-9_-]*")
_SENTENCE = re.compile(r"[^\n.!?。！？]*(?:[.!?。！？](?=\s|$|[^\s\d])|\n|$)")
_BESIDE_WIDE = re.compile(r"(?<=[^\x00-\x7f])\s+|\s+(?=[^\x00-\x7f])")
_IN_LIST = re.compile(r"((?:\w+\.)*(?:messages|input))\[(\d+)\]\.(?:content|output)")
_SYSTEM = ("system", "developer")
_LINED = ("retrieval_order", cut_lines)


class Mender:
    """Mends row by row what ``findings`` name; `learn` must have taken every row before."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        found = [finding for finding in findings if finding.cause in MENDED]
        self._moved = {f.label for f in found if f.cause in MOVED and f.role == "system"}
        self._spelt = any(f.cause in SPELT for f in found)
        programs = {f.role for f in found if f.cause in KEYED and f.role in BY_PROGRAMS}
        self._json = {role: JsonSurvey() for role in programs}
        self._tools = any(f.role == "tools" or f.cause == "tool_order" for f in found)
        self._properties: Literal["kept", "sorted"] = (
            "sorted" if any(f.role == "tools" and f.cause in KEYED for f in found) else "kept"
        )
        self._surveys: dict[str, list[BlockSurvey]] = {}
        for cause, cut in (*((cause, cut_paragraphs) for cause in ORDERED), _LINED):
            for role in {f.role for f in found if f.cause == cause}:
                self._surveys.setdefault(role, []).append(_survey(role, cut))
        self._arrangers: dict[str, BlockSurvey | None] = {}
        self._forms: dict[str, str] = {}

    @property
    def has_work(self) -> bool:
        """Whether anything found can be mended."""
        return bool(self._moved or self._spelt or self._json or self._tools or self._surveys)

    @property
    def must_learn(self) -> bool:
        """Whether all rows must be read before the first is mended."""
        return bool(self._surveys or self._json)

    def learn(self, row: Row) -> None:
        """Take a row of the log before any is mended."""
        for logged in _requests(row):
            for message in logged.messages:
                role, text = _role(message), content_text(message.get("content"))
                for survey in self._surveys.get(role, ()):
                    survey.learn(text)
                if role in self._json:
                    self._json[role].learn(text)

    def mend(self, row: Row) -> Row:
        """Return the mended row; the same object where nothing is to be done."""
        requests = _requests(row)
        if not requests:
            return row
        mended = copy.deepcopy(row)
        for logged in _requests(mended):
            self._mend(mended, logged)
        return mended if _differs(mended, row) else row

    def _mend(self, row: Row, logged: Logged) -> None:
        moved: list[str] = []
        for message, field in zip(logged.messages, logged.fields, strict=True):
            texts_at(row, field, self._change(_role(message), moved))
        if moved and not _append(row, logged, "\n".join(moved)):
            texts_at(row, logged.fields[0], lambda text: "\n".join([*moved, text]))
        if self._tools and logged.tools:
            _order_tools(row, logged.tools_field, self._properties)

    def _change(self, role: str, moved: list[str]) -> Callable[[str], str]:
        def change(text: str) -> str:
            if role == "system" and self._moved:
                text = self._without_volatile(text, moved)
            if role in self._json:
                text = self._json[role].arrange(text)
            if (survey := self._arranger(role)) is not None and role != "assistant":
                text = survey.arrange(text)
            return self._first_form(text) if role == "system" and self._spelt else text

        return change

    def _arranger(self, role: str) -> BlockSurvey | None:
        if role not in self._arrangers:
            able = (survey for survey in self._surveys.get(role, ()) if survey.can_arrange())
            self._arrangers[role] = next(able, None)
        return self._arrangers[role]

    def _without_volatile(self, text: str, moved: list[str]) -> str:
        kept: list[str] = []
        for line in text.splitlines(keepends=True):
            piece = next((p for p in _movable(line) if self._is_moved(line, p)), None)
            if piece is None:
                kept.append(line)
                continue
            moved.append(piece.strip())
            rest = line.replace(piece, "", 1)
            kept.append(rest if rest.strip() else "")
        return "".join(kept)

    def _is_moved(self, line: str, piece: str) -> bool:
        """Say whether what changes, behind one of the labels, stands in this piece of a line."""
        start = line.index(piece)
        for found in _CHANGES.finditer(line, start, start + len(piece)):
            before = _VARIES.sub("#", line[max(0, found.start() - 2 * LEAD_CHARS) : found.start()])
            ends = (before.rfind(label) + len(label) for label in self._moved if label in before)
            if any(len(before) - end <= MAX_BETWEEN for end in ends):
                return True
        return False

    def _first_form(self, text: str) -> str:
        """Return the form in which an equal text was met first: of the whole, else of each line."""
        key = _folded(text)
        if key in self._forms:
            return self._forms[key]
        lines = text.split("\n")
        for at, line in enumerate(lines):
            if len(line) > MAX_LINE_CHARS // 10:
                lines[at] = self._forms.setdefault(_folded(line), line)
        written = "\n".join(lines)
        if len(self._forms) < MAX_FORMS:
            self._forms[key] = written
        return written


def _requests(row: Row) -> list[Logged]:
    try:
        return list(read_logged(row))
    except BadRequest:
        return []


def _role(message: Row) -> str:
    return "system" if message["role"] in _SYSTEM else str(message["role"])


def _movable(line: str) -> list[str]:
    """Return the pieces of a line that may be moved alone: the line, or its sentences."""
    if len(line) <= MAX_LINE_CHARS // 3:
        return [line]
    return [s for s in _SENTENCE.findall(line) if s.strip() and len(s) <= MAX_LINE_CHARS]


def _append(row: Row, logged: Logged, text: str) -> bool:
    """Put facts behind everything else: into the last message if a user wrote it, else alone."""
    if logged.messages[-1]["role"] == "user":
        done: list[bool] = []

        def put(content: str) -> str:
            done.append(True)
            return f"{content}\n\n{text}"

        _last_text(row, logged.fields[-1], put)
        return bool(done)
    place, at = _list_at(row, logged.fields[-1])
    if place is None or at != len(place) - 1:
        return False
    if isinstance(place[at], dict) and _holds_results(place[at]):
        place[at]["content"].append({"type": "text", "text": text})
    else:
        place.append({"role": "user", "content": text})
    return True


def _list_at(row: Row, field: str) -> tuple[list[Any] | None, int]:
    """Find the list of messages or items in which a field stands, and where in it."""
    found = _IN_LIST.match(field)
    if found is None:
        return None, 0
    place: Any = row
    for step in found[1].split("."):
        place = place[step]
    return (place, int(found[2])) if isinstance(place, list) else (None, 0)


def _holds_results(message: Row) -> bool:
    """Tell Anthropic's form, in which results of tools are parts of what the user says."""
    return message.get("role") == "user" and isinstance(message.get("content"), list)


def _last_text(row: Row, field: str, change: Callable[[str], str]) -> None:
    texts: list[str] = []
    texts_at(row, field, lambda text: texts.append(text) or text)  # type: ignore[func-returns-value]
    seen = iter(range(len(texts)))
    texts_at(row, field, lambda text: change(text) if next(seen) == len(texts) - 1 else text)


def _order_tools(row: Row, field: str, properties: Literal["kept", "sorted"]) -> None:
    *steps, last = field.split(".")
    place: Any = row
    for step in steps:
        place = place[step]
    place[last] = canonical_tools(place[last], properties)


def _survey(role: str, cut: Cut) -> BlockSurvey:
    return BlockSurvey(cut, may_move) if role in BY_USERS else BlockSurvey(cut)


def _folded(text: str) -> str:
    """Write equal-looking texts one way; a digit in another form, as an exponent, is another."""
    plain = "".join(
        char if unicodedata.category(char) == "No" else unicodedata.normalize("NFKC", char)
        for char in unicodedata.normalize("NFC", text)
    )
    return " ".join(_BESIDE_WIDE.sub("", plain.casefold()).split())


def _differs(a: Any, b: Any) -> bool:
    """Say whether two values are written differently, also by the order of their keys."""
    return msgspec.json.encode(a) != msgspec.json.encode(b)
