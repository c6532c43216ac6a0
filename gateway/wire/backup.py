"""Lines of a backup: a header, entries, rows of journals, and an end that vouches for them."""

from hashlib import sha256
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gateway.evidence import JournalRow
from semantic_layer import Entry

FORMAT = 1
_LAST_TIME = 1e11  # Unix seconds: far past any clock, far below what a store can count


class Header(Struct, frozen=True, tag="strata-backup", tag_field="kind"):
    """The first line: what wrote it and when (Unix seconds).

    ``embedder`` is the fingerprint of what gave the vectors, None without likeness.
    """

    format: int
    gateway: str
    at: float
    embedder: str | None = None


class EntryLine(Struct, frozen=True, tag="entry", tag_field="kind"):
    """One entry as it is stored; its answer and request are base64."""

    entry: Entry


class End(Struct, frozen=True, tag="end", tag_field="kind"):
    """The last line: how many lines lie between the first and it, and the hash of all before it."""

    count: int
    sha256: str


Content = EntryLine | JournalRow
Line = Header | EntryLine | JournalRow | End


class RestoreBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Some lines of a backup."""

    lines: Annotated[list[EntryLine | JournalRow], Meta(max_length=1000)]


class RestoreResult(Struct, frozen=True):
    """What was written; ``kept`` were there already, ``expired`` are past their time."""

    entries: int
    rows: int
    kept: int
    expired: int


class BadLine(ValueError):
    """What is wrong with a line."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class Writing:
    """Encodes lines and reckons their hash."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._count = -1  # the header is not counted

    def line(self, line: Header | EntryLine | JournalRow) -> bytes:
        """Return a line's bytes, with its end."""
        data = _encode(line) + b"\n"
        self._hash.update(data)
        self._count += 1
        return data

    def end(self) -> bytes:
        """Return the last line."""
        return _encode(End(self._count, self._hash.hexdigest())) + b"\n"


class Reading:
    """Reads lines in order and checks each of them.

    Raises:
        BadLine: from any method, with what is wrong.
    """

    def __init__(self) -> None:
        self._hash = sha256()
        self._count = 0
        self.header: Header | None = None
        self.is_whole = False

    def line(self, data: bytes) -> Content | None:
        """Return an entry or a row; None for the first and the last line."""
        if self.is_whole:
            raise BadLine("there is more after the end")
        line = _read(data)
        if isinstance(line, End):
            self._close(line)
            return None
        self._hash.update(data)
        if self.header is None:
            self._open(line)
            return None
        if isinstance(line, Header):
            raise BadLine("a second header")
        self._count += 1
        return line

    def end(self) -> None:
        """Check that the end was there."""
        if not self.is_whole:
            raise BadLine("the end is missing: the backup was cut off")

    def _open(self, line: Line) -> None:
        if not isinstance(line, Header):
            raise BadLine("not a backup: it has no header")
        if line.format != FORMAT:
            raise BadLine(f"format {line.format} is not known; this version reads {FORMAT}")
        self.header = line

    def _close(self, end: End) -> None:
        if self.header is None:
            raise BadLine("not a backup: it has no header")
        if end.count != self._count:
            raise BadLine(f"{self._count} lines are there, {end.count} were written")
        if end.sha256 != self._hash.hexdigest():
            raise BadLine("the lines are not those that were written: their sha256 differs")
        self.is_whole = True


def problem_of(line: Content) -> str | None:
    """Return what no store could keep; None when there is nothing."""
    if isinstance(line, JournalRow):
        return None
    entry = line.entry
    times = (0.0, entry.created_at, entry.expires_at, _LAST_TIME)
    if not all(before <= after for before, after in pairwise(times)):
        return "created_at and expires_at are no times in this order"
    if not (entry.entry_id and entry.tenant):
        return "an entry needs entry_id and tenant"
    return None


def _read(data: bytes) -> Line:
    if not data.endswith(b"\n"):
        raise BadLine("the line is cut off")
    try:
        line = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadLine(str(error)) from None
    if isinstance(line, EntryLine | JournalRow) and (problem := problem_of(line)):
        raise BadLine(problem)
    return line
