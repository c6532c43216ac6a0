"""Writes a mended copy of a log, and shows by replay what that is worth.

The log is read again and again until nothing that can be mended is found, a few times at most. A
kind of mend without which the copy would share more is not made.
"""

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from gateway.lint.finding import Report
from gateway.lint.hit_counter import Cache
from gateway.lint.log_file import plain_lines
from gateway.lint.log_reader import LogReader
from gateway.lint.mender import kinds_of
from gateway.lint.tokens import PromptTokens
from gateway.lint.trials import Trials

MAX_ROUNDS = 3


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """A mended copy: the report on it, the requests changed, and the first changes as a diff.

    ``not_made`` are the kinds of mends that would have lowered the hit share.
    """

    output: str
    changed: int
    diff: str
    after: Report
    not_made: tuple[str, ...] = ()


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
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        trials = Trials(cache, Path(folder), tokens, told)
        report, now, changed, diff = before, source, set[int](), list[str]()
        for _ in range(MAX_ROUNDS):
            made = trials.best(now, report)
            if made is None:
                break
            after = lint_file(cache, made.path, str(output), told, tokens)
            if after.hit_share < report.hit_share:  # which the tried stretches did not show
                trials.not_made |= kinds_of(report.findings)
                break
            changed |= made.changed
            diff += made.diff
            now, report = made.path, after
        _copy(now, output)
    return Fix(
        output=str(output),
        changed=len(changed),
        diff="\n".join(diff),
        after=report,
        not_made=tuple(sorted(trials.not_made)),
    )


def _copy(source: Path, output: Path) -> None:
    """Write the last copy where it is wanted, packed if its name says so."""
    is_packed = output.suffix == ".gz"
    with source.open("rb") as file, (gzip.open if is_packed else open)(output, "wb") as written:
        for line in plain_lines(file):
            written.write(line)
