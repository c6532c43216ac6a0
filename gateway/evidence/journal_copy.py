"""Copies what is learnt and set, row by row, out of the journals and back into others."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from gateway.evidence.experiments import EXPERIMENTS, MAX_EXPERIMENTS, MAX_GATEWAYS, TALLIES
from gateway.evidence.intents import (
    CHANGES,
    INTENTS,
    MAX_CHANGES,
    MAX_INTENTS,
    from_another_store,
)
from gateway.evidence.request_log import REQUESTS, RequestLog
from semantic_layer import LABELS, MAX_PER_INTENT, MAX_REJECTIONS, REJECTIONS, Journal

_MOST = {
    INTENTS: MAX_INTENTS,
    CHANGES: MAX_CHANGES,
    EXPERIMENTS: MAX_EXPERIMENTS,
    TALLIES: MAX_GATEWAYS,
    LABELS: MAX_PER_INTENT,
    REJECTIONS: MAX_REJECTIONS,
}
_PAGE = 500
_PATTERN = (
    rf"^(?:{INTENTS}|{CHANGES}|{EXPERIMENTS}|{REJECTIONS}|{REQUESTS}|(?:{TALLIES}|{LABELS}).+)$"
)


class JournalRow(Struct, frozen=True, tag="row", tag_field="kind", forbid_unknown_fields=True):
    """One row with the name of its journal; in JSON its data is base64."""

    journal: Annotated[str, Meta(pattern=_PATTERN)]
    id: str
    data: bytes


class JournalCopy:
    """Gives every row of the journals, and takes rows into them.

    Raises:
        StoreUnavailable: from any method, when the store is slow, down or full.
    """

    def __init__(self, journal: Journal, requests: RequestLog) -> None:
        self._journal = journal
        self._requests = requests

    async def names(self, *, with_requests: bool) -> list[str]:
        """Name the journals that are copied."""
        if with_requests:
            await self._requests.flush()
        heads = await self._journal.heads()
        return sorted(
            name for name in heads if _kind(name) in _MOST or (with_requests and name == REQUESTS)
        )

    async def rows(self, name: str) -> AsyncIterator[JournalRow]:
        """Give a journal's rows that can be read, oldest first."""
        seq = 0
        while rows := await self._journal.after(name, seq, _PAGE):
            for row in rows:
                if not row.is_shut:
                    yield JournalRow(name, row.row_id, row.data)
            seq = rows[-1].seq

    async def put(self, rows: Sequence[JournalRow]) -> int:
        """Write the rows whose ids are not there, in order; return how many."""
        by_name: dict[str, dict[str, bytes]] = defaultdict(dict)
        for row in rows:
            by_name[row.journal][row.id] = row.data
        return sum([await self._put(name, of_name) for name, of_name in by_name.items()])

    async def _put(self, name: str, rows: dict[str, bytes]) -> int:
        most = self._requests.most if name == REQUESTS else _MOST[_kind(name)]
        if not most:
            return 0
        held = await self._journal.get(name, list(rows))
        fresh = {
            row_id: data
            for (row_id, data), row in zip(rows.items(), held, strict=True)
            if row is None
        }
        if name == CHANGES:
            fresh = {row_id: from_another_store(data) for row_id, data in fresh.items()}
        if fresh:
            await self._journal.put(name, fresh, most=most)
        return len(fresh)


def _kind(name: str) -> str:
    """Return ``kind:`` of ``kind:x``, else the name."""
    kind, colon, _ = name.partition(":")
    return f"{kind}{colon}"
