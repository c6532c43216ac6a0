"""Finished rows of the table, kept in a file: a run that is cut goes on where it ended.

A row is kept under a digest of what it came of: the stream, its vectors and the source of what
decided. When one of them changes, the row is played anew. No text is written, only numbers.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.bench.semantic.stream import Array, Stream, Tally


def digest(stream: Stream, vectors: Array, sources: Iterable[Path], *more: object) -> str:
    """Return the name of what a row comes of; a folder stands for all that lies in it."""
    found = hashlib.blake2b(digest_size=12)
    for part in (stream.texts, stream.group, sorted(stream.apart), more):
        found.update(repr(part).encode())
    found.update(vectors.tobytes())
    for source in sources:
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                found.update(file.read_bytes())
    return found.hexdigest()


class KeptRows:
    """The rows of a file, by name and digest."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows: dict[tuple[str, str], Tally] = {}
        for line in path.read_text(encoding="ascii").splitlines() if path.exists() else ():
            row = json.loads(line)
            self._rows[row["tally"]["name"], row["of"]] = _read(row["tally"])

    def get(self, name: str, of: str) -> Tally | None:
        """Return a finished row."""
        return self._rows.get((name, of))

    def keep(self, of: str, tally: Tally) -> None:
        """Keep a row that is done."""
        self._rows[tally.name, of] = tally
        with self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps({"of": of, "tally": asdict(tally)}) + "\n")


def _read(fields: dict[str, object]) -> Tally:
    tally = Tally(**fields)  # type: ignore[arg-type]  # as `keep` wrote them
    tally.wrong_pairs = [_pair(pair) for pair in tally.wrong_pairs]
    tally.judged = [(asked, bool(bad)) for asked, bad in tally.judged]
    return tally


def _pair(pair: Sequence[int]) -> tuple[int, int]:
    stored, asked = pair
    return stored, asked
