"""Reads a log once and says what splits its prefixes. Memory stays flat, whatever its length."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway.errors import BadRequest
from gateway.lint.fact_lines import TIME_NAMES
from gateway.lint.finding import MENDS, BadRow, Finding, Findings, Position, Site
from gateway.lint.graft import Grafted, graft, ungrafted
from gateway.lint.history import is_summary
from gateway.lint.judge import Judged, judge
from gateway.lint.locator import Locator
from gateway.lint.logged import Logged, Row, read_logged
from gateway.lint.pieces import Turn
from gateway.lint.recent import RecentTurns, Split, Trail, trail_of
from gateway.lint.tokens import PromptTokens
from gateway.lint.turn import TurnMaker, Turns
from gateway.lint.worth import VOLATILE, costs, least_lost, may_cost
from prefix_layer import first_edit

JUDGED_PER_SITE = 48  # splits judged one by one before a site counts as known
JUDGED_AGAIN = 16  # every so many splits of a known site
MAX_FAULTS = 8  # of one prompt that are looked for
MEASURED = 8  # requests of a finding whose tokens are counted
MAX_SITES = 20_000
MAX_BAD = 1000
LEAD_CHARS = 32
LINE_CHARS = 256

_VARIES = re.compile(r"[0-9a-fA-F-]{6,}|\d+")


@dataclass(frozen=True, slots=True)
class _Place:
    """One request, cut up."""

    file: str
    line: int
    logged: Logged
    turns: Turns


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The part that each fault has in a split, and what the prompt without them would have found.

    That is a share of what the nearest prompt shows to be lost; where it is more than all of that,
    a share of everything behind the split.
    """

    parts: Mapping[Site, float]
    of_lost: float
    of_rest: float

    def num_won(self, turns: Turns, split: Split) -> float:
        """Estimate the characters that a prompt would have found at a split judged like this."""
        if self.of_lost <= 1:
            return self.of_lost * split.num_lost
        return max(split.num_lost, self.of_rest * _num_behind(turns, split))


@dataclass(slots=True)
class _Known:
    """What the last splits at a site were judged to be; one without parts is no fault."""

    num_splits: int = 0
    verdicts: list[_Verdict] = field(default_factory=list)


class Linter:
    """Takes rows one by one; what it found may be asked at any time."""

    def __init__(self, tokens: PromptTokens) -> None:
        self._locator = Locator(tokens)
        self._maker = TurnMaker(shows_call_ids=tokens.shows_call_ids)
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
        where = f"{place.file}:{place.line}"
        trail = trail_of(place.turns, place.logged.model)
        split = self._recent.split(trail, mended=False)
        mended = place.turns
        if split is not None and (at := _summary_at(place.turns, split)) is not None:
            split = self._summed_up(place.turns, trail, split, at)
        if split is not None and may_cost(place.turns, split):
            verdict, mended = self._verdict(place, trail, split)
            num_won = verdict.num_won(place.turns, split)
            for site, part in verdict.parts.items():
                self._count_in(site, num_won * part)
        if mended is not place.turns:
            self._recent.remember(trail_of(mended, trail.group), where, mended, is_mended=True)
        self._recent.remember(trail, where, mended, is_mended=False)

    def _summed_up(self, turns: Turns, trail: Trail, split: Split, at: int) -> Split:
        """Return the split from the prompt that a summary took on; all of the summary is lost."""
        last = turns.turns[at + 1].key
        ended = self._recent.split(trail, mended=False, last=last) or split
        return replace(ended, num_lost=ended.num_lost + len(turns.turns[at].text))

    def _count_in(self, site: Site, num_lost: float) -> None:
        if (finding := self._findings.get(site)) is not None:
            finding.requests += 1
            finding.lost_chars += round(num_lost)

    def _verdict(self, place: _Place, trail: Trail, split: Split) -> tuple[_Verdict, Turns]:
        """Judge a split, or take it for what those before it at its place were.

        Also returns the prompt without the faults that were found.
        """
        if len(self._known) > MAX_SITES:
            self._known.clear()
        known = self._known.setdefault(_split_place(place.turns, split), _Known())
        known.num_splits += 1
        verdicts = known.verdicts
        if len(verdicts) == JUDGED_PER_SITE:
            if known.num_splits % JUDGED_AGAIN:
                return verdicts[known.num_splits % JUDGED_PER_SITE], place.turns
            verdicts.pop(0)
        faults, mended, left = self._judge(place, split)
        num_won = self._num_won(trail, mended) + left
        of_lost = num_won / split.num_lost
        if any(site.cause == "edited_history" for site, _ in faults):
            of_lost = min(1.0, of_lost)  # the prompt without the edit is longer
        of_rest = min(1.0, num_won / max(1, _num_behind(place.turns, split)))
        verdicts.append(_Verdict(_parts(faults), of_lost, of_rest))
        return verdicts[-1], mended

    def _num_won(self, trail: Trail, mended: Turns) -> int:
        """Count the characters that a prompt without its faults would have found more."""
        before = self._recent.num_found(trail, mended=False)
        before = max(before, _num_alike(trail.turns, mended))
        return max(0, self._recent.num_found(trail_of(mended, trail.group), mended=True) - before)

    def _judge(self, place: _Place, split: Split) -> tuple[list[tuple[Site, int]], Turns, int]:
        """Name one fault behind the other, each with the characters that are lost behind it.

        Also returns the prompt without them, and what is lost behind one that stays in it.
        """
        faults: list[tuple[Site, int]] = []
        now = ungrafted(place.turns)
        for _ in range(MAX_FAULTS):
            judged = judge(now.turns, split.nearest.turns)
            at = None if judged is None else now.original(judged)
            if judged is None or at is None or not costs(place.turns, split, at):
                break
            before = [site for site, _ in faults]
            faults.append((self._find(place, split, at, before), split.num_lost))
            if (further := self._without(now, split, judged)) is None:
                return faults, now.turns, split.num_lost
            now = further
            behind = self._recent.split(trail_of(now.turns, place.logged.model), mended=True)
            if behind is None or behind.num_lost < least_lost(place.turns):
                break
            split = behind
        return faults, now.turns, 0

    def _without(self, prompt: Grafted, split: Split, judged: Judged) -> Grafted | None:
        """Put what the nearest prompt holds, or held when mended, in place of a fault."""
        mended = split.nearest.mended
        again = judge(prompt.turns, mended)
        made = None
        if again is not None and again.cause == judged.cause:
            made = graft(prompt, mended, again, self._maker.turn)
        return made or graft(prompt, split.nearest.turns, judged, self._maker.turn)

    def _find(self, place: _Place, split: Split, judged: Judged, before: list[Site]) -> Site:
        """Return the finding's site; one that was met ``before`` in the prompt counts once."""
        turn = place.turns.turns[judged.turn]
        role = turn.role if judged.cause != "edited_history" else judged.name
        site = Site(judged.cause, role, _label(turn, judged))
        finding = self._findings.get(site)
        if finding is not None and finding.num_measured >= MEASURED:
            return site
        at = self._locator.locate(place.logged, place.turns, judged)
        own = self._locator.num_tokens(judged.piece) if judged.cause in VOLATILE else 0
        if finding is None:
            position = Position(place.file, place.line, at.field, at.message, at.char, at.token)
            finding = Finding(
                cause=judged.cause,
                name=judged.name,
                detail=judged.detail,
                mend=MENDS[judged.cause],
                role=turn.role,
                label=site.label,
                position=position,
                seen=split.nearest.place,
            )
            self._findings.add(site, finding)
        finding.num_measured += site not in before
        finding.measured_chars += at.num_chars
        finding.measured_tokens += round(at.num_tokens)
        finding.own_tokens += own
        return site


def _parts(faults: list[tuple[Site, int]]) -> dict[Site, float]:
    """Share out what was lost; what stands behind several faults is lost to all of them alike."""
    parts: dict[Site, float] = {}
    behind = [*(num_lost for _, num_lost in faults[1:]), 0][: len(faults)]
    for count, ((_, num_lost), further) in enumerate(zip(faults, behind, strict=True), start=1):
        part = max(0, num_lost - further) / count / faults[0][1]
        for site, _ in faults[:count]:
            parts[site] = parts.get(site, 0.0) + part
    return parts


def _num_behind(turns: Turns, split: Split) -> int:
    """Count the characters behind a split."""
    return turns.num_chars - split.num_common


def _num_alike(turns: Turns, mended: Turns) -> int:
    """Count the characters before the first fault."""
    count = 0
    for ours, theirs in zip(turns.turns, mended.turns, strict=False):
        if ours.key != theirs.key:
            edit = first_edit(ours.text, theirs.text) if ours.role == theirs.role else None
            return count + (0 if edit is None else edit.start)
        count += len(ours.text)
    return count


def _summary_at(turns: Turns, split: Split) -> int | None:
    """Return the turn at a split, neither the first nor the last, if it sums up what was there."""
    at = split.num_common
    for number, turn in enumerate(turns.turns[:-1]):
        if at < len(turn.text):
            return number if number and is_summary(turn) else None
        at -= len(turn.text)
    return None


def _label(turn: Turn, judged: Judged) -> str:
    """Return the words before what changes, by which one fault is told from another."""
    if judged.cause not in VOLATILE:
        return ""
    line = turn.text[max(0, judged.char - LINE_CHARS) : judged.char].rsplit("\n", 1)[-1]
    if judged.cause != "timestamp":
        return _VARIES.sub("#", line)[-LEAD_CHARS:]
    lead = _VARIES.sub("#", TIME_NAMES.sub("#", line))[-LEAD_CHARS:]
    return lead.split("#", 1)[0].rstrip(" ,.")


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
