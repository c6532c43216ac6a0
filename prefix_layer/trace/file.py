"""Requests by the blocks of their prompts, read from a file. Knows no policy and no pool."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from prefix_layer.errors import TraceError

_MAX_ID = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Trace:
    """Prompts in order of arrival, each the ids of its blocks.

    An id stands for the whole prefix up to its block, as a block hash does.
    """

    name: str
    requests: list[list[int]]

    @property
    def num_blocks(self) -> int:
        """Blocks of all requests, repeated ones too."""
        return sum(map(len, self.requests))


class _Line(msgspec.Struct):
    hash_ids: list[Annotated[int, msgspec.Meta(ge=0, le=_MAX_ID)]]


def read_trace(path: Path) -> Trace:
    """Read JSON lines with ``hash_ids``; other fields and empty lines are skipped.

    Raises:
        TraceError: no such file, or a line that is no request.
    """
    decoder = msgspec.json.Decoder(_Line)
    requests: list[list[int]] = []
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    requests.append(_decode(decoder, line, f"{path}:{number}"))
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    if not requests:
        raise TraceError(f"{path}: no requests")
    return Trace(path.name, requests)


def _decode(decoder: msgspec.json.Decoder[_Line], line: bytes, place: str) -> list[int]:
    try:
        ids = decoder.decode(line).hash_ids
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{place}: {error}") from error
    if len(set(ids)) < len(ids):
        raise TraceError(f"{place}: a block stands twice in one request")
    return ids
