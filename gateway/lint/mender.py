"""Mends the requests of a log as its findings say, only where that is provably harmless. Pure.

Lines of a system prompt that are a changing value and its label, as `FactLines` tells them, become
a system message of their own, where `FactPlaces` says, or else the end of the system prompt: never
part of what a user wrote. Texts of system prompts that differ at the ends of lines only are written
as the first of them, as `Spelling` does. Tools get one order, and so do passages and examples that
stood in several, as `passages` tells them, and the keys of JSON that a program wrote: in system
prompts and tools' results. Everything else is left to its author.
"""

import copy
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, Literal

import msgspec

from gateway.errors import BadRequest
from gateway.layout import canonical_tools
from gateway.lint.block_survey import BlockSurvey
from gateway.lint.fact_lines import FactLines
from gateway.lint.fact_places import STAYS, FactPlaces, drop_empty, is_marked, put
from gateway.lint.fence import may_go_on
from gateway.lint.finding import Finding
from gateway.lint.json_survey import JsonSurvey, without_json
from gateway.lint.logged import Logged, Row, read_logged, texts_at, value_at
from gateway.lint.order import cut_elements, cut_lines, cut_paragraphs
from gateway.lint.passages import cites, may_move, may_order_keys, says_order
from gateway.lint.spelling import Spelling
from gateway.lint.turn import content_text

MENDED = frozenset(
    {
        "timestamp", "uuid", "identifier", "number", "whitespace", "unicode_form",
        "json_key_order", "json_format", "tool_order", "retrieval_order", "few_shot_order",
    }
)  # fmt: skip
MOVED = ("timestamp", "uuid", "identifier", "number")
ORDERED = ("retrieval_order", "few_shot_order")
SPELT = ("whitespace", "unicode_form")
KEYED = ("json_key_order", "json_format")
Kind = Literal["facts", "spelling", "tools", "json keys", "order"]
BY_PROGRAMS = ("system", "tool", "function")
BY_USERS = ("user", "prompt")
ARRANGED = ("system", *BY_USERS)  # what tools return has the order in which it was found
_SYSTEM = ("system", "developer")
_MARKED = ("retrieval_order", cut_elements)
_LINED = ("retrieval_order", cut_lines)


def kind_of(finding: Finding) -> Kind | None:
    """Return the kind of mend for a finding; None where there is none."""
    if finding.cause not in MENDED:
        return None
    if finding.role == "tools" or finding.cause == "tool_order":
        return "tools"
    kinds: dict[Kind, tuple[str, ...]] = {"facts": MOVED, "spelling": SPELT, "json keys": KEYED}
    return next((kind for kind, causes in kinds.items() if finding.cause in causes), "order")


def kinds_of(findings: Iterable[Finding]) -> set[Kind]:
    """Return the kinds of mends for all findings."""
    return {kind for finding in findings if (kind := kind_of(finding)) is not None}


class Mender:
    """Mends row by row what ``findings`` name; `learn` must have taken every row before.

    ``takes_notes`` is false where system messages can't stand behind a user's.
    """

    def __init__(self, findings: Iterable[Finding], *, takes_notes: bool = True) -> None:
        found = [finding for finding in findings if finding.cause in MENDED]
        moved = any(f.cause in MOVED and f.role == "system" for f in found)
        self._facts = FactLines() if moved else None
        self._places = FactPlaces()
        self._takes_notes = takes_notes
        spelt = any(f.cause in SPELT and f.role == "system" for f in found)
        self._spelling = Spelling() if spelt else None
        programs = {f.role for f in found if f.cause in KEYED and f.role in BY_PROGRAMS}
        self._json = {role: JsonSurvey() for role in programs}
        self._tools = any(f.role == "tools" or f.cause == "tool_order" for f in found)
        self._properties: Literal["kept", "sorted"] = (
            "sorted" if any(f.role == "tools" and f.cause in KEYED for f in found) else "kept"
        )
        self._surveys: dict[str, list[BlockSurvey]] = {}
        cuts = (_MARKED, *((cause, cut_paragraphs) for cause in ORDERED), _LINED)
        for cause, cut in cuts:
            for role in {f.role for f in found if f.cause == cause and f.role in ARRANGED}:
                self._surveys.setdefault(role, []).append(BlockSurvey(cut, may_move))
        self._arrangers: dict[str, BlockSurvey | None] = {}
        self._are_cited = False

    @property
    def has_work(self) -> bool:
        """Whether anything found can be mended."""
        works = (self._facts, self._spelling, self._json, self._tools, self._surveys)
        return any(map(bool, works))

    @property
    def must_learn(self) -> bool:
        """Whether all rows must be read before the first is mended."""
        return bool(self._surveys or self._json or self._facts)

    def learn(self, row: Row) -> None:
        """Take a row of the log before any is mended."""
        for logged in _requests(row):
            for message in logged.messages:
                role, text = _role(message), content_text(message.get("content"))
                for survey in self._surveys.get(role, ()):
                    survey.learn(text)
                if role in self._json:
                    self._json[role].learn(text)
                if role == "system" and self._facts:
                    self._facts.learn(text)
            if self._surveys and not self._are_cited:
                self._are_cited = any(map(cites, _since_answer(logged)))

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
        leading = logged.fields[: _num_leading(logged)]
        told = self._told(row, leading)
        is_noted = told and self._takes_notes
        place = self._places.place(logged, told) if is_noted else STAYS
        change_of = self._changes(logged)
        for message, field in zip(logged.messages, logged.fields, strict=True):
            if told and field in leading:
                self._take_out(row, field, place)
            texts_at(row, field, change_of(_role(message)))
        if place != STAYS:
            put(row, logged, place, told)
            for field in reversed(leading):
                drop_empty(row, field)
        if self._tools and logged.tools:
            _order_tools(row, logged.tools_field, self._properties)

    def _told(self, row: Row, fields: Iterable[str]) -> str:
        """Return the facts that system prompts hold and that change from prompt to prompt."""
        if self._facts is None:
            return ""
        return "\n".join(
            fact
            for field in fields
            for text in _texts(row, field)
            for fact in self._taken(text, may_empty=_is_text(row, field))[0]
        )

    def _take_out(self, row: Row, field: str, place: int) -> None:
        """Take the facts out of a system prompt, or put them last where they stay in it.

        Behind blocks that a client marks for its cache they are a block of their own, unmarked.
        """
        parts = value_at(row, field)
        is_parted = place == STAYS and is_marked(parts)
        if place == STAYS and not is_parted:
            texts_at(row, field, self._facts_last)
            return
        told, may_empty = self._told(row, [field]), _is_text(row, field)
        texts_at(row, field, lambda text: self._taken(text, may_empty=may_empty)[1])
        if is_parted and told:
            parts.append({"type": "text", "text": told})

    def _taken(self, text: str, *, may_empty: bool) -> tuple[list[str], str]:
        """Take facts out of a text; a part of a message that is nothing else stays."""
        facts, rest = ([], text) if self._facts is None else self._facts.take(text)
        return (facts, rest) if may_empty or rest.strip() else ([], text)

    def _facts_last(self, text: str) -> str:
        """Put the facts of a system prompt at its end, unless that belongs to something else."""
        facts, rest = self._taken(text, may_empty=False)
        rest = rest.rstrip()
        if not facts or not may_go_on(rest) or rest.endswith((":", "：")):
            return text
        return "\n\n".join([rest, "\n".join(facts)])

    def _changes(self, logged: Logged) -> Callable[[str], Callable[[str], str]]:
        """Return what is done to the texts of each role in a request."""
        instructions = _instructions(logged)
        may_arrange = not self._are_cited and not any(map(says_order, instructions))
        may_key = bool(self._json) and all(
            may_order_keys(without_json(text)) for text in instructions
        )
        return lambda role: self._change(role, may_arrange=may_arrange, may_key=may_key)

    def _change(self, role: str, *, may_arrange: bool, may_key: bool) -> Callable[[str], str]:
        def change(text: str) -> str:
            if may_key and role in self._json:
                text = self._json[role].arrange(text)
            survey = self._arranger(role)
            if survey is not None and (may_arrange or role not in BY_USERS):
                text = survey.arrange(text)
            if role == "system" and self._spelling is not None:
                text = self._spelling.first_form(text)
            return text

        return change

    def _arranger(self, role: str) -> BlockSurvey | None:
        if role not in self._arrangers:
            able = (survey for survey in self._surveys.get(role, ()) if survey.can_arrange())
            self._arrangers[role] = next(able, None)
        return self._arrangers[role]


def _requests(row: Row) -> list[Logged]:
    try:
        return list(read_logged(row))
    except BadRequest:
        return []


def _role(message: Row) -> str:
    return "system" if message["role"] in _SYSTEM else str(message["role"])


def _num_leading(logged: Logged) -> int:
    """Count the system messages before anything was said."""
    roles = map(_role, logged.messages)
    return len(list(takewhile("system".__eq__, roles)))


def _instructions(logged: Logged) -> list[str]:
    return [content_text(m.get("content")) for m in logged.messages if _role(m) == "system"]


def _since_answer(logged: Logged) -> list[str]:
    """Return what was said since a model's first answer, which may point at what was before."""
    roles = [_role(message) for message in logged.messages]
    start = roles.index("assistant") if "assistant" in roles else len(roles)
    return [content_text(message.get("content")) for message in logged.messages[start:]]


def _is_text(row: Row, field: str) -> bool:
    return isinstance(value_at(row, field), str)


def _texts(row: Row, field: str) -> list[str]:
    texts: list[str] = []
    texts_at(row, field, lambda text: texts.append(text) or text)  # type: ignore[func-returns-value]
    return texts


def _order_tools(row: Row, field: str, properties: Literal["kept", "sorted"]) -> None:
    parent, _, last = field.rpartition(".")
    place = value_at(row, parent) if parent else row
    place[last] = canonical_tools(place[last], properties)


def _differs(a: Any, b: Any) -> bool:
    """Say whether two values are written differently, also by the order of their keys."""
    return msgspec.json.encode(a) != msgspec.json.encode(b)
