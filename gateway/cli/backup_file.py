"""A backup as a file: written whole or not at all, checked before a line of it is used."""

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from gateway.cli.errors import BackupFileError
from gateway.wire.backup import BadLine, Content, Reading

MAX_LINES = 200
MAX_BYTES = 4 << 20  # well under what the gateway takes as one body
_CUT = "the end is missing: the backup was cut off"

Numbered = tuple[int, bytes, Content]


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write, for the owner alone; it takes its name when all is well.

    Raises:
        BackupFileError: the folder or the disk does not take it.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise BackupFileError(f"{path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as raw:
            with _written(raw, path) as file:
                yield file
            raw.flush()
            os.fsync(raw.fileno())
        Path(name).replace(path)
    except OSError as error:
        raise BackupFileError(f"{path}: {error.strerror or error}") from error
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def checked(lines: Iterable[bytes], where: str) -> Iterator[Numbered]:
    """Give entries and rows with the numbers of their lines, from 1, as they are read.

    Raises:
        BackupFileError: names the first bad line; at the end too, when the whole is not right.
    """
    reading, number = Reading(), 0
    try:
        for number, data in enumerate(lines, start=1):
            content = reading.line(data)
            if content is not None:
                yield number, data, content
        reading.end()
    except BadLine as error:
        raise BackupFileError(f"{where}: line {number}: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BackupFileError(f"{where}: after line {number}: {_CUT} ({error})") from None


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Give a backup to read.

    Raises:
        BackupFileError: it cannot be opened.
    """
    try:
        raw = path.open("rb")
    except OSError as error:
        raise BackupFileError(f"{path}: {error.strerror}") from error
    with raw:
        if _is_zipped(path):
            with gzip.GzipFile(fileobj=raw) as file:
                yield file  # type: ignore[misc]
        else:
            yield raw


def batches(lines: Iterable[Numbered]) -> Iterator[list[bytes]]:
    """Group lines so that each group fits one request."""
    batch: list[bytes] = []
    num_bytes = 0
    for _, data, _ in lines:
        if batch and (len(batch) == MAX_LINES or num_bytes + len(data) > MAX_BYTES):
            yield batch
            batch, num_bytes = [], 0
        batch.append(data)
        num_bytes += len(data)
    if batch:
        yield batch


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a body into lines that keep their ends."""
    rest: list[bytes] = []
    for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*rest, line, b"\n"])
            rest = []
        rest.append(last)
    if left := b"".join(rest):
        yield left


def _is_zipped(path: Path) -> bool:
    return path.suffix == ".gz"


@contextmanager
def _written(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if not _is_zipped(path):
        yield raw
        return
    with gzip.GzipFile(path.stem, "wb", fileobj=raw) as file:
        yield file  # type: ignore[misc]
