"""Files of requests, read row by row: JSON lines, or one JSON document. Memory stays flat."""

import codecs
import gzip
import io
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

import msgspec

from gateway.lint.logged import Row

GZIP = b"\x1f\x8b"

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row, its line in the file, from 1, and that line's text.

    Of one JSON document, ``line`` is the place in its list.
    """

    line: int
    row: Row
    text: bytes


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that is no request, as it stands in the file, and why."""

    line: int
    message: str
    text: bytes = b""


def plain_lines(file: BinaryIO) -> Iterator[bytes]:
    """Give the lines of a file, unpacked where it is packed with gzip."""
    seen = file if isinstance(file, io.BufferedReader) else _buffered(file)
    if seen.peek(len(GZIP))[: len(GZIP)] == GZIP:
        with gzip.GzipFile(fileobj=seen) as unpacked:
            yield from unpacked
    else:
        yield from seen


def _buffered(file: BinaryIO) -> io.BufferedReader:
    return io.BufferedReader(cast("io.RawIOBase", file))


def read_rows(lines: Iterable[bytes]) -> Iterator[LogRow | BadRow]:
    """Read JSON lines; a file that is one JSON list or object over many lines is read whole."""
    number = 0
    try:
        for row in _rows(enumerate(lines, start=1)):
            number = row.line
            yield row
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield BadRow(number + 1, f"the packed file is broken from here on: {error}")


def _rows(numbered: Iterator[tuple[int, bytes]]) -> Iterator[LogRow | BadRow]:
    first, head = next(((number, line) for number, line in numbered if line.strip()), (1, b""))
    head = head.removeprefix(codecs.BOM_UTF8)
    if head.strip()[:1] == b"[" or head.strip() == b"{":
        yield from _document(head + b"".join(line for _, line in numbered))
        return
    for number, text in itertools.chain([(first, head)], numbered):
        if text.strip():
            yield _row(number, text)


def decode_row(text: bytes) -> Row:
    """Decode the text of a `LogRow`."""
    return cast("Row", _decode(text))


def _row(number: int, text: bytes) -> LogRow | BadRow:
    try:
        row = _decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return BadRow(number, f"not JSON: {error}", text)
    if isinstance(row, dict):
        return LogRow(number, row, text)
    return BadRow(number, "not an object", text)


def _document(text: bytes) -> Iterator[LogRow | BadRow]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield BadRow(1, f"not JSON: {error}")
        return
    for at, row in enumerate(found if isinstance(found, list) else [found], start=1):
        if isinstance(row, dict):
            yield LogRow(at, row, msgspec.json.encode(row))
        else:
            yield BadRow(at, "not an object", msgspec.json.encode(row) + b"\n")
