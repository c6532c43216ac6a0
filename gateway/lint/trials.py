"""Tries mends on a log: a kind without which the replayed copy shares more is left out.

Of a long log stretches are tried, from its start to its end.
"""

import difflib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gateway.errors import BadRequest
from gateway.lint.finding import Finding, Report
from gateway.lint.hit_counter import Cache, HitCounter
from gateway.lint.log_file import BadRow, LogRow, plain_lines, read_rows
from gateway.lint.logged import Row
from gateway.lint.mender import Kind, Mender, kind_of, kinds_of
from gateway.lint.tokens import PromptTokens

SHOWN_REQUESTS = 2  # whose difference is shown, of each copy
SHOWN_LINES = 80
TOLD_ROWS = 500
MAX_TRIED = 5000  # requests of a log; of a longer one as many in stretches
STRETCH_ROWS = 100


@dataclass(frozen=True, slots=True)
class Made:
    """A mended copy, the lines that changed in it, and the first changes."""

    path: Path
    changed: set[int]
    diff: list[str]


class Trials:
    """Writes copies into a folder; ``not_made`` are the kinds that would have lowered the share.

    ``told`` hears how many rows of a copy were replayed; ``most`` requests are tried.
    """

    def __init__(
        self,
        cache: Cache,
        folder: Path,
        tokens: PromptTokens,
        told: Callable[[int], None],
        most: int = MAX_TRIED,
    ) -> None:
        self._cache = cache
        self._folder = folder
        self._tokens = tokens
        self._told = told
        self._most = most
        self._num_copies = 0
        self._takes_notes = _takes_notes(tokens)
        self.not_made: set[Kind] = set()

    def best(self, source: Path, report: Report) -> Made | None:
        """Return the copy of a linted log that shares most; None where nothing is to be mended."""
        kinds = kinds_of(report.findings) - self.not_made
        if report.requests <= self._most:
            return self._best(source, report.hit_share, report.findings, kinds)
        tried = self._stretches(source, math.ceil(report.requests / self._most))
        self._best(tried, self._share(tried), report.findings, kinds)
        return self._copy(source, report.findings, kinds - self.not_made)

    def _best(
        self, source: Path, before: float, findings: list[Finding], kinds: set[Kind]
    ) -> Made | None:
        made = self._copy(source, findings, kinds)
        if made is None:
            return None
        share = self._share(made.path)
        for kind in sorted(kinds):
            less = self._copy(source, findings, kinds - {kind})
            without = before if less is None else self._share(less.path)
            if without > share:
                self.not_made.add(kind)
                made, share, kinds = less, without, kinds - {kind}
            if made is None:
                return None
        if share < before:
            self.not_made |= kinds
            return None
        return made

    def _stretches(self, source: Path, every: int) -> Path:
        """Copy one of ``every`` so many stretches of a log."""
        path = self._folder / "stretches.jsonl"
        with path.open("wb") as file:
            for number, row in enumerate(_rows(source)):
                if number // STRETCH_ROWS % every == 0:
                    file.write(row.text.rstrip(b"\n") + b"\n")
        return path

    def _copy(self, source: Path, findings: list[Finding], kinds: set[Kind]) -> Made | None:
        """Mend some kinds; None where that changes nothing."""
        chosen = (finding for finding in findings if kind_of(finding) in kinds)
        mender = Mender(chosen, takes_notes=self._takes_notes)
        if not mender.has_work:
            return None
        self._num_copies += 1
        made = _rewrite(source, self._folder / f"{self._num_copies}.jsonl", mender)
        return made if made.changed else None

    def _share(self, path: Path) -> float:
        counter = HitCounter(self._cache, self._tokens)
        for number, row in enumerate(_rows(path), start=1):
            if isinstance(row, LogRow):
                counter.read(path.name, row.line, row.row)
            if number % TOLD_ROWS == 0:
                self._told(number)
        return counter.hits().share


def _takes_notes(tokens: PromptTokens) -> bool:
    """Say whether a model's template shows a system message behind a user's, at its place."""
    said = [("system", "rules"), ("user", "asked"), ("system", "noted")]
    try:
        shown = tokens.render([{"role": role, "content": text} for role, text in said], [])
    except BadRequest:
        return False
    return -1 < shown.find("rules") < shown.find("asked") < shown.find("noted")


def _rewrite(source: Path, output: Path, mender: Mender) -> Made:
    """Write the mended rows. Rows that can't be read stay."""
    if mender.must_learn:
        for row in _rows(source):
            if isinstance(row, LogRow):
                mender.learn(row.row)
    changed, diff = set[int](), list[str]()
    with output.open("wb") as file:
        for number, row in enumerate(_rows(source), start=1):
            if isinstance(row, BadRow):
                file.write(row.text)
                continue
            mended = mender.mend(row.row)
            if mended is not row.row:
                if len(changed) < SHOWN_REQUESTS:
                    diff += _diff(row.row, mended, row.line)
                changed.add(number)
            file.write(msgspec.json.encode(mended) + b"\n")
    return Made(output, changed, diff)


def _rows(path: Path) -> Iterator[LogRow | BadRow]:
    with path.open("rb") as file:
        yield from read_rows(plain_lines(file))


def _diff(before: Row, after: Row, line: int) -> list[str]:
    ours, theirs = (_shown(row).splitlines() for row in (before, after))
    lines = difflib.unified_diff(
        ours, theirs, f"line {line}", f"line {line}, mended", "", "", 1, ""
    )
    return list(lines)[:SHOWN_LINES]


def _shown(row: Row) -> str:
    """Write a row so that the lines of its texts are lines."""
    text = msgspec.json.format(msgspec.json.encode(row), indent=2).decode()
    return text.replace("\\n", "\n")
