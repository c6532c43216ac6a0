"""Writes a mended copy of a log, and shows by replay what that is worth.

The log is read again and again until nothing that can be mended is found, a few times at most.
"""

import difflib
import gzip
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from gateway.lint.finding import Report
from gateway.lint.hit_counter import Cache
from gateway.lint.log_file import BadRow, LogRow, plain_lines, read_rows
from gateway.lint.log_reader import LogReader
from gateway.lint.logged import Row
from gateway.lint.mender import Mender
from gateway.lint.tokens import PromptTokens

MAX_ROUNDS = 3
SHOWN_REQUESTS = 2  # whose difference is shown, of each round
SHOWN_LINES = 80


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """A mended copy: the report on it, the requests changed, and the first changes as a diff."""

    output: str
    changed: int
    diff: str
    after: Report


def lint_file(
    cache: Cache, path: Path, name: str, told: Callable[[int], None], tokens: PromptTokens
) -> Report:
    """Lint one file under a name."""
    reader = LogReader(cache, told, tokens)
    try:
        with path.open("rb") as file:
            reader.read(name, plain_lines(file))
        return reader.report()
    finally:
        reader.close()


def fix_file(
    cache: Cache,
    source: Path,
    output: Path,
    before: Report,
    told: Callable[[int], None],
    tokens: PromptTokens,
) -> Fix:
    """Write the mended copy of ``source``, of which ``before`` is the report.

    Raises:
        OSError: a file cannot be read or written.
    """
    report, changed, diff = before, set[int](), list[str]()
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        now = source
        for turn in range(MAX_ROUNDS):
            mender = Mender(report.findings)
            if not mender.has_work:
                break
            written = Path(folder) / f"{turn}.jsonl"
            here = _rewrite(now, written, mender, diff)
            if not here:
                break
            changed |= here
            now = written
            report = lint_file(cache, now, str(output), told, tokens)
        _copy(now, output)
    return Fix(output=str(output), changed=len(changed), diff="\n".join(diff), after=report)


def _copy(source: Path, output: Path) -> None:
    """Write the last copy where it is wanted, packed if its name says so."""
    is_packed = output.suffix == ".gz"
    with source.open("rb") as file, (gzip.open if is_packed else open)(output, "wb") as written:
        for line in plain_lines(file):
            written.write(line)


def _rewrite(source: Path, output: Path, mender: Mender, diff: list[str]) -> set[int]:
    """Write the mended rows; return the lines that changed. Rows that can't be read stay."""
    if mender.must_learn:
        for row in _rows(source):
            if isinstance(row, LogRow):
                mender.learn(row.row)
    changed: set[int] = set()
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
    return changed


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
