"""Reads a log once and says what splits its prefixes. Memory stays flat, whatever its length."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.errors import BadRequest
from gateway.lint.finding import MENDS, BadRow, Finding, Findings, Position, Site
from gateway.lint.hits import ID_BYTES
from gateway.lint.judge import Judged, judge
from gateway.lint.logged import Logged, Row, read_logged
from gateway.lint.recent import RecentTurns, Split
from gateway.lint.tokens import PromptTokens
from gateway.lint.turn import TOOLS, Turn, TurnMaker, Turns

MIN_LOST_CHARS = 64  # of English; some 16 tokens
MIN_LOST_WIDE = 20  # of scripts whose characters are tokens
JUDGED_PER_SITE = 48  # splits judged one by one before a site counts as known
JUDGED_AGAIN = 16  # every so many splits of a known site
MEASURED = 8  # requests of a finding whose tokens are counted
MAX_SITES = 20_000
MAX_BAD = 1000
LEAD_CHARS = 32
VOLATILE = ("timestamp", "uuid", "identifier", "number")

_VARIES = re.compile(r"[0-9a-fA-F-]{6,}|\d+")
_MESSAGE = re.compile(r"(?:messages|\binput)(?:\[\d+\])*?\[(\d+)\](?:\.|$)")
_MARK = "\ue000"
_MARK_TOOL = {"type": "function", "function": {"name": _MARK}}

Seen = Callable[[Logged], None]


@dataclass(frozen=True, slots=True)
class _Place:
    """One request, cut up."""

    file: str
    line: int
    logged: Logged
    turns: Turns


@dataclass(slots=True)
class _Known:
    """What the last splits at a site were judged to be; None is a split that is no fault."""

    num_splits: int = 0
    verdicts: list[Site | None] = field(default_factory=list)


class Linter:
    """Takes rows one by one; what it found may be asked at any time."""

    def __init__(self, tokens: PromptTokens) -> None:
        self._tokens = tokens
        self._maker = TurnMaker()
        self._recent = RecentTurns()
        self._findings = Findings()
        self._known: dict[int, _Known] = {}
        self.bad: list[BadRow] = []
        self.num_requests = 0

    def bad_row(self, file: str, line: int, message: str) -> None:
        """Note a row that could not be read."""
        if len(self.bad) < MAX_BAD:
            self.bad.append(BadRow(file, line, message))

    def read(self, file: str, line: int, row: Row) -> None:
        """Take the requests of one row."""
        try:
            for logged in read_logged(row):
                self._take(_Place(file, line, logged, self._maker.turns(logged)))
        except BadRequest as error:
            self.bad_row(file, line, error.message)

    def findings(self) -> list[Finding]:
        """Return what was found, dearest first."""
        return self._findings.ranked(self.num_requests)

    def _take(self, place: _Place) -> None:
        self.num_requests += 1
        turns = place.turns
        split = self._recent.visit(turns, f"{place.file}:{place.line}", place.logged.model)
        if split is None or split.num_lost < _least(turns):
            return
        site = self._site(place, split)
        if site is not None and (finding := self._findings.get(site)) is not None:
            if finding.requests < MEASURED:
                num_tokens = self._count(turns)
                finding.measured_chars += turns.num_chars if num_tokens else 0
                finding.measured_tokens += num_tokens
            finding.requests += 1
            finding.lost_chars += split.num_lost

    def _site(self, place: _Place, split: Split) -> Site | None:
        """Judge a split, or take it for what those before it at its place were."""
        if len(self._known) > MAX_SITES:
            self._known.clear()
        known = self._known.setdefault(_split_place(place.turns, split), _Known())
        known.num_splits += 1
        verdicts = known.verdicts
        if len(verdicts) == JUDGED_PER_SITE:
            if known.num_splits % JUDGED_AGAIN:
                return verdicts[known.num_splits % JUDGED_PER_SITE]
            verdicts.pop(0)
        judged = judge(place.turns, split.nearest.turns)
        verdicts.append(None if judged is None else self._find(place, split, judged))
        return verdicts[-1]

    def _find(self, place: _Place, split: Split, judged: Judged) -> Site:
        turn = place.turns.turns[judged.turn]
        site = Site(judged.cause, turn.role, _label(turn, judged))
        if self._findings.get(site) is None:
            finding = Finding(
                cause=judged.cause,
                name=judged.name,
                detail=judged.detail,
                mend=MENDS[judged.cause],
                role=turn.role,
                label=site.label,
                position=self._position(place, judged),
                seen=split.nearest.place,
            )
            self._findings.add(site, finding)
        return site

    def _position(self, place: _Place, judged: Judged) -> Position:
        field = place.turns.fields[judged.turn]
        found = _MESSAGE.search(field)
        message = int(found[1]) if found else None
        token = self._token(place, judged)
        return Position(place.file, place.line, field, message, judged.char, token)

    def _token(self, place: _Place, judged: Judged) -> int | None:
        """Return the token in which the character stands: where a mark put there would split."""
        logged, turns = place.logged, place.turns.turns
        messages, tools = list(logged.messages), list(logged.tools)
        text = turns[judged.turn].text
        if turns[judged.turn].role == TOOLS:
            tools[text[: judged.char].count("\n") :] = [_MARK_TOOL]
        else:
            at = judged.turn - any(turn.role == TOOLS for turn in turns[: judged.turn])
            marked = text[: judged.char] + _MARK + text[judged.char :]
            messages[at] = {"role": messages[at]["role"], "content": marked}
        try:
            whole = self._tokens.encode(self._tokens.render(logged.messages, logged.tools))
            cut = self._tokens.encode(self._tokens.render(messages, tools))
        except BadRequest:
            return None
        return _num_common(whole, cut) // ID_BYTES

    def _count(self, turns: Turns) -> int:
        """Count the tokens of the texts, without what a template puts around them."""
        text = "\n".join(turn.text for turn in turns.turns)
        return len(self._tokens.encode(text)) // ID_BYTES


def _least(turns: Turns) -> int:
    """Return the characters that are worth a word: fewer where each is a token."""
    is_plain = all(turn.text.isascii() for turn in turns.turns)
    return MIN_LOST_CHARS if is_plain else MIN_LOST_WIDE


def _label(turn: Turn, judged: Judged) -> str:
    """Return the words before what changes, by which one fault is told from another."""
    if judged.cause not in VOLATILE:
        return ""
    line = turn.text[max(0, judged.char - LEAD_CHARS) : judged.char].rsplit("\n", 1)[-1]
    return _VARIES.sub("#", line)


def _num_common(a: bytes, b: bytes) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (x, y) in pairs if x != y), min(len(a), len(b)))


def _split_place(turns: Turns, split: Split) -> int:
    """Hash the turns before a split; in the first turn also how the text behind it begins."""
    at = split.num_common
    for number, turn in enumerate(turns.turns):
        if at < len(turn.text):
            if number:
                before = tuple(turn.key for turn in turns.turns[:number])
                return hash((before, turn.role))
            return hash((split.site, turn.role, _VARIES.sub("", turn.text[at : at + LEAD_CHARS])))
        at -= len(turn.text)
    return split.site
