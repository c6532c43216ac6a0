"""Rows of cache entries as JSON lines: what ``import`` reads and ``export`` writes."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from gateway.cli.errors import NoRow

Row = dict[str, Any]

STDIN = "<stdin>"
MAX_ROWS = 200
MAX_BYTES = 4 << 20  # well under what the gateway takes as one body


@dataclass(frozen=True, slots=True)
class Line:
    """A row with its place in the file, from 1, and the size of its text in bytes."""

    number: int
    num_bytes: int
    row: Row


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that was not imported, and why."""

    number: int
    message: str


def parse_lines(lines: Iterable[bytes], name: str) -> Iterator[Line | BadRow]:
    """Read JSON lines; empty lines are skipped. Bad ones are given behind the first good one.

    Raises:
        NoRow: there is no good one; says what is wrong with the first.
    """
    bad: list[BadRow] = []
    parsed = _parsed(lines)
    for line in parsed:
        if isinstance(line, Line):
            yield from bad
            yield line
            yield from parsed
            return
        bad.append(line)
    raise no_row(name, bad)


def name_of(file: BinaryIO) -> str:
    """Return how to call a file that was opened."""
    name = getattr(file, "name", STDIN)
    return "standard input" if name == STDIN else str(name)


def no_row(name: str, bad: Sequence[BadRow]) -> NoRow:
    """Return the error of a file without a row to take; ``bad`` are those it has."""
    if not bad:
        return NoRow(f"no row in {name}")
    more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
    return NoRow(f"no row in {name} can be taken: line {bad[0].number}: {bad[0].message}{more}")


def _parsed(lines: Iterable[bytes]) -> Iterator[Line | BadRow]:
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except ValueError as error:
            yield BadRow(number, f"not JSON: {error}")
            continue
        if isinstance(row, dict):
            yield Line(number, len(text), row)
        else:
            yield BadRow(number, "not an object")


def batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Group rows so that each group fits one request."""
    batch: list[Line] = []
    num_bytes = 0
    for line in lines:
        if batch and (len(batch) == MAX_ROWS or num_bytes + line.num_bytes > MAX_BYTES):
            yield batch
            batch, num_bytes = [], 0
        batch.append(line)
        num_bytes += line.num_bytes
    if batch:
        yield batch


class NotExported(ValueError):
    """An entry is none that import takes; says why."""


def exported(entry: Row, now: float) -> Row:
    """Turn an entry of the admin API into a row to import.

    The time it has left becomes its TTL, in whole seconds.

    Raises:
        NotExported: it holds no request or no answer in words.
    """
    _check_whole(entry)
    row = {
        "request": entry["request"],
        "response": entry["response"],
        "ttl": max(1, math.ceil(entry["expires_at"] - now)),
        "tenant": entry["tenant"],
    }
    optional = {name: entry.get(name) for name in ("namespace", "tags", "intent", "exact_only")}
    return {**row, **{name: value for name, value in optional.items() if value}}


def _check_whole(entry: Row) -> None:
    request = entry.get("request") or {}
    if not {"messages", "prompt", "input"} & request.keys():
        raise NotExported("its request was not kept")
    if entry.get("response") is None:
        is_vector = "input" in request and "messages" not in request
        raise NotExported(
            "an embedding, which is made anew when it is asked for"
            if is_vector
            else "its answer cannot be read: another version of Strata wrote it"
        )
