"""Files of requests, read row by row: JSON lines, or one JSON document. Memory stays flat."""

import codecs
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from gateway.lint.logged import Row

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row and its line in the file, from 1; of one JSON document, the place in its list."""

    line: int
    row: Row


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that is no request, as it stands in the file, and why."""

    line: int
    message: str
    text: bytes = b""


def read_rows(lines: Iterable[bytes]) -> Iterator[LogRow | BadRow]:
    """Read JSON lines; a file that is one JSON list or object over many lines is read whole."""
    numbered = enumerate(lines, start=1)
    first, head = next(((number, line) for number, line in numbered if line.strip()), (1, b""))
    head = head.removeprefix(codecs.BOM_UTF8)
    if head.strip()[:1] == b"[" or head.strip() == b"{":
        yield from _document(head + b"".join(line for _, line in numbered))
        return
    for number, text in itertools.chain([(first, head)], numbered):
        if text.strip():
            yield _row(number, text)


def _row(number: int, text: bytes) -> LogRow | BadRow:
    try:
        row = _decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return BadRow(number, f"not JSON: {error}", text)
    return LogRow(number, row) if isinstance(row, dict) else BadRow(number, "not an object", text)


def _document(text: bytes) -> Iterator[LogRow | BadRow]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield BadRow(1, f"not JSON: {error}")
        return
    for at, row in enumerate(found if isinstance(found, list) else [found], start=1):
        yield LogRow(at, row) if isinstance(row, dict) else BadRow(at, "not an object")
