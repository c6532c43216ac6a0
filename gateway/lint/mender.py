"""Mends the requests of a log as its findings say, without changing what they ask. Pure.

Lines that change go behind everything else; equal texts are written as the first of them; chunks,
examples, tools and JSON keys get one order. What needs an author is left: history, wording, lists.
"""

import copy
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gateway.errors import BadRequest
from gateway.layout import canonical_json, canonical_tools
from gateway.lint.block_survey import BlockSurvey
from gateway.lint.finding import Finding
from gateway.lint.linter import LEAD_CHARS
from gateway.lint.logged import Logged, Row, read_logged, texts_at
from gateway.lint.order import cut_lines, cut_paragraphs
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
MAX_LINE_CHARS = 240  # a longer line is no fact of its own
MAX_FORMS = 10_000
MAX_BETWEEN = 16  # characters between a label and the digits behind it, as of a month

_VARIES = re.compile(r"[0-9a-fA-F-]{6,}|\d+")
_CHANGES = re.compile(r"[A-Za-z_]*\d[A-Za-z0-9_-]*")
_SENTENCE = re.compile(r"[^\n.!?。！？]*(?:[.!?。！？](?=\s|$|[^\s\d])|\n|$)")
_SYSTEM = ("system", "developer")
_OPENS = re.compile(r"[{\[]")
_decoder = json.JSONDecoder()


class Mender:
    """Mends row by row what ``findings`` name; `learn` must have taken every row before."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        found = [finding for finding in findings if finding.cause in MENDED]
        self._moved = {f.label for f in found if f.cause in MOVED and f.role == "system"}
        self._spelt = any(f.cause in SPELT for f in found)
        self._json_roles = {f.role for f in found if f.cause in ("json_key_order", "json_format")}
        self._tools = any(f.role == "tools" or f.cause == "tool_order" for f in found)
        self._surveys = {f.role: [BlockSurvey(cut_paragraphs)] for f in found if f.cause in ORDERED}
        for finding in found:
            if finding.cause == "retrieval_order":
                self._surveys[finding.role].append(BlockSurvey(cut_lines))
        self._arrangers: dict[str, BlockSurvey | None] = {}
        self._forms: dict[str, str] = {}

    @property
    def has_work(self) -> bool:
        """Whether anything found can be mended."""
        return bool(self._moved or self._spelt or self._json_roles or self._tools or self._surveys)

    @property
    def must_learn(self) -> bool:
        """Whether all rows must be read before the first is mended."""
        return bool(self._surveys)

    def learn(self, row: Row) -> None:
        """Take a row of the log before any is mended."""
        for logged in _requests(row):
            for message in logged.messages:
                for survey in self._surveys.get(_role(message), ()):
                    survey.learn(content_text(message.get("content")))

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
        if self._tools and logged.tools_field:
            _order_tools(row, logged.tools_field)

    def _change(self, role: str, moved: list[str]) -> Callable[[str], str]:
        def change(text: str) -> str:
            if role == "system" and self._moved:
                text = self._without_volatile(text, moved)
            if role in self._json_roles:
                text = _canonical_values(text)
            if (survey := self._arranger(role)) is not None:
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
    place, _, name = logged.fields[-1].rpartition("].")
    if name != "content" or not place.endswith(f"messages[{len(logged.messages) - 1}"):
        return False
    _messages_at(row, place.rpartition("[")[0]).append({"role": "user", "content": text})
    return True


def _last_text(row: Row, field: str, change: Callable[[str], str]) -> None:
    texts: list[str] = []
    texts_at(row, field, lambda text: texts.append(text) or text)  # type: ignore[func-returns-value]
    seen = iter(range(len(texts)))
    texts_at(row, field, lambda text: change(text) if next(seen) == len(texts) - 1 else text)


def _messages_at(row: Row, field: str) -> list[Any]:
    place: Any = row
    for step in field.split("."):
        place = place[step]
    assert isinstance(place, list), "the field names messages"
    return place


def _order_tools(row: Row, field: str) -> None:
    *steps, last = field.split(".")
    place: Any = row
    for step in steps:
        place = place[step]
    place[last] = canonical_tools(place[last], "sorted")


def _canonical_values(text: str) -> str:
    """Write each JSON object and list in a text in canonical form."""
    written: list[str] = []
    at = 0
    while (found := _OPENS.search(text, at)) is not None:
        start = found.start()
        try:
            value, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            written.append(text[at : start + 1])
            at = start + 1
            continue
        is_data = isinstance(value, dict) or any(isinstance(item, dict) for item in value)
        written += [text[at:start], canonical_json(value) if is_data else text[start:end]]
        at = end
    return "".join([*written, text[at:]])


def _folded(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def _differs(a: Any, b: Any) -> bool:
    """Say whether two values are written differently, also by the order of their keys."""
    return msgspec.json.encode(a) != msgspec.json.encode(b)
