"""Reads a log once and says what splits its prefixes. Memory stays flat, whatever its length."""

import re
from dataclasses import dataclass

from gateway.backends.tokenizer import Tokenizer
from gateway.errors import BadRequest
from gateway.lint.finding import MENDS, BadRow, Finding, Findings, Position, Report, Site
from gateway.lint.hits import ID_BYTES, PrefixReplay
from gateway.lint.judge import Judged, judge
from gateway.lint.logged import Logged, Row, read_logged
from gateway.lint.recent import RecentTurns, Split
from gateway.lint.tokens import PromptTokens
from gateway.lint.turn import TOOLS, Turn, TurnMaker, Turns

MIN_LOST_TOKENS = 16
JUDGED_PER_SITE = 12  # splits judged one by one before a site's cause is taken as known
JUDGED_AGAIN = 64  # every so many splits of a known site
MAX_SITES = 50_000
MAX_BAD = 1000
LEAD_CHARS = 32
VOLATILE = ("timestamp", "uuid", "identifier", "number")

_VARIES = re.compile(r"[0-9a-fA-F-]{6,}|\d+")
_MESSAGE = re.compile(r"messages(?:\[\d+\])*?\[(\d+)\](?:\.|$)")
_MARK = "\ue000"
_MARK_TOOL = {"type": "function", "function": {"name": _MARK}}


@dataclass(slots=True)
class _Known:
    """What splits at a site were judged to be."""

    num_judged: int = 0
    num_splits: int = 0
    last: Judged | None = None
    agreed: bool = True


class Linter:
    """Takes rows one by one; `report` may be asked at any time.

    ``block_size`` and ``num_blocks`` are those of the cache whose hits are predicted.
    """

    def __init__(self, tokenizer: Tokenizer, block_size: int, num_blocks: int) -> None:
        self._tokens = PromptTokens(tokenizer)
        self._maker = TurnMaker()
        self._recent = RecentTurns()
        self._replay = PrefixReplay(block_size, num_blocks)
        self._findings = Findings()
        self._known: dict[int, _Known] = {}
        self._bad: list[BadRow] = []
        self._num_requests = self._num_lost = 0

    @property
    def num_requests(self) -> int:
        """Requests read so far."""
        return self._num_requests

    def bad_row(self, file: str, line: int, message: str) -> None:
        """Note a row that could not be read."""
        if len(self._bad) < MAX_BAD:
            self._bad.append(BadRow(file, line, message))

    def read(self, file: str, line: int, row: Row) -> None:
        """Take the requests of one row."""
        try:
            for logged in read_logged(row):
                self._take(file, line, logged)
        except BadRequest as error:
            self.bad_row(file, line, error.message)

    def report(self) -> Report:
        """Say what was found."""
        tokens = self._replay.num_tokens
        reachable = self._replay.num_cached + self._num_lost
        return Report(
            requests=self._num_requests,
            prompt_tokens=tokens,
            hit_share=self._replay.hit_share,
            reachable_share=min(1.0, reachable / tokens) if tokens else 0.0,
            findings=self._findings.ranked(self._num_requests),
            bad=self._bad,
        )

    def _take(self, file: str, line: int, logged: Logged) -> None:
        rendered = self._tokens.render(logged.messages, logged.tools)
        ids = self._tokens.encode(rendered)
        self._num_requests += 1
        self._replay.visit(logged.model, ids)
        turns = self._maker.turns(logged)
        place = f"{file}:{line}"
        split = self._recent.visit(turns, place, logged.model)
        if split is None:
            return
        num_lost = round(split.num_lost * len(ids) / ID_BYTES / max(turns.num_chars, 1))
        if num_lost >= MIN_LOST_TOKENS:
            self._take_split(file, line, logged, turns, split, num_lost)

    def _take_split(
        self, file: str, line: int, logged: Logged, turns: Turns, split: Split, num_lost: int
    ) -> None:
        judged = self._judge(turns, split)
        if judged is None:
            return
        turn = turns.turns[judged.turn]
        site = Site(judged.cause, turn.role, _label(turn, judged))
        finding = self._findings.get(site)
        if finding is None:
            position = self._position(file, line, logged, turns, judged)
            finding = Finding(
                cause=judged.cause,
                name=judged.name,
                detail=judged.detail,
                mend=MENDS[judged.cause],
                role=turn.role,
                position=position,
                seen=split.nearest.place,
            )
            self._findings.add(site, finding)
        finding.requests += 1
        finding.lost_tokens += num_lost
        self._num_lost += num_lost

    def _judge(self, turns: Turns, split: Split) -> Judged | None:
        if len(self._known) > MAX_SITES:
            self._known.clear()
        known = self._known.setdefault(_site(turns, split), _Known())
        known.num_splits += 1
        is_known = known.agreed and known.num_judged >= JUDGED_PER_SITE
        if is_known and known.num_splits % JUDGED_AGAIN:
            return known.last
        judged = judge(turns, split.nearest.turns)
        known.num_judged += 1
        if known.num_judged > 1:
            known.agreed = known.agreed and _kind(judged) == _kind(known.last)
        known.last = judged
        return judged

    def _position(
        self, file: str, line: int, logged: Logged, turns: Turns, judged: Judged
    ) -> Position:
        field = turns.fields[judged.turn]
        found = _MESSAGE.search(field)
        message = int(found[1]) if found else None
        token = self._token(logged, turns, judged)
        return Position(file, line, field, message, judged.char, token)

    def _token(self, logged: Logged, turns: Turns, judged: Judged) -> int | None:
        """Return the token in which the character stands: where a mark put there would split."""
        messages, tools = list(logged.messages), list(logged.tools)
        text = turns.turns[judged.turn].text
        if turns.turns[judged.turn].role == TOOLS:
            tools[text[: judged.char].count("\n") :] = [_MARK_TOOL]
        else:
            at = judged.turn - any(turn.role == TOOLS for turn in turns.turns[: judged.turn])
            marked = text[: judged.char] + _MARK + text[judged.char :]
            messages[at] = {"role": messages[at]["role"], "content": marked}
        whole = self._tokens.encode(self._tokens.render(logged.messages, logged.tools))
        try:
            cut = self._tokens.encode(self._tokens.render(messages, tools))
        except BadRequest:
            return None
        return _num_common(whole, cut) // ID_BYTES


def _kind(judged: Judged | None) -> tuple[str, str] | None:
    return None if judged is None else (judged.cause, judged.name)


def _label(turn: Turn, judged: Judged) -> str:
    """Return the words before what changes, by which one fault is told from another."""
    if judged.cause not in VOLATILE:
        return ""
    line = turn.text[max(0, judged.char - LEAD_CHARS) : judged.char].rsplit("\n", 1)[-1]
    return _VARIES.sub("#", line)


def _num_common(a: bytes, b: bytes) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (x, y) in pairs if x != y), min(len(a), len(b)))


def _site(turns: Turns, split: Split) -> int:
    """Hash what stands before a split, and how the text behind it begins."""
    at = split.num_common
    for turn in turns.turns:
        if at < len(turn.text):
            return hash((split.site, turn.role, _VARIES.sub("", turn.text[at : at + LEAD_CHARS])))
        at -= len(turn.text)
    return split.site
