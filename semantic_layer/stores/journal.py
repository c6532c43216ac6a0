"""Journals: named, bounded lists of rows that every gateway over one store reads alike.

A row is bytes under an id. Each write gets the journal's next sequence number, so a reader that
remembers the last one it saw hears of every change once. Knows nothing of what the rows hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Row:
    """One row; ``seq`` (from 1) is that of its last write. Empty data marks a row taken back.

    ``is_shut`` marks one whose data is kept and cannot be opened; it reads as empty.
    """

    row_id: str
    seq: int
    data: bytes
    is_shut: bool = False


class Journal(Protocol):
    """Where journals are kept.

    Raises:
        StoreUnavailable: from any method, when the store is slow, down or full.
    """

    async def put(self, name: str, rows: Mapping[str, bytes], *, most: int) -> int:
        """Write rows, replacing those of the same ids; return the last one's sequence number.

        Of more than ``most`` rows the oldest written are dropped.
        """
        ...

    async def swap(self, name: str, row_id: str, data: bytes, *, expected: int) -> int | None:
        """Write a row if its sequence number is ``expected`` (0: not there); None when it isn't."""
        ...

    async def get(self, name: str, row_ids: Sequence[str]) -> list[Row | None]:
        """Return one result per id, in order."""
        ...

    async def after(self, name: str, seq: int, limit: int) -> list[Row]:
        """Return the next rows written after ``seq``, oldest first."""
        ...

    async def before(self, name: str, seq: int | None, limit: int) -> list[Row]:
        """Return the rows written before ``seq`` (None: the end), newest first."""
        ...

    async def heads(self) -> dict[str, int]:
        """Return the last sequence number of every journal."""
        ...

    async def close(self) -> None:
        """Release everything; idempotent."""
        ...


class MemoryJournal:
    """Journals of this process alone."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Row]] = {}
        self._heads: dict[str, int] = {}

    async def put(self, name: str, rows: Mapping[str, bytes], *, most: int) -> int:
        """Write rows, replacing those of the same ids; return the last one's sequence number."""
        kept = self._rows.setdefault(name, {})
        for row_id, data in rows.items():
            self._write(name, row_id, data)
        for row_id in list(kept)[: max(0, len(kept) - most)]:
            del kept[row_id]
        return self._heads.get(name, 0)

    async def swap(self, name: str, row_id: str, data: bytes, *, expected: int) -> int | None:
        """Write a row if its sequence number is ``expected``; None when it isn't."""
        before = self._rows.get(name, {}).get(row_id)
        if (before.seq if before else 0) != expected:
            return None
        return self._write(name, row_id, data)

    async def get(self, name: str, row_ids: Sequence[str]) -> list[Row | None]:
        """Return one result per id, in order."""
        kept = self._rows.get(name, {})
        return [kept.get(row_id) for row_id in row_ids]

    async def after(self, name: str, seq: int, limit: int) -> list[Row]:
        """Return the next rows written after ``seq``, oldest first."""
        return [row for row in self._rows.get(name, {}).values() if row.seq > seq][:limit]

    async def before(self, name: str, seq: int | None, limit: int) -> list[Row]:
        """Return the rows written before ``seq`` (None: the end), newest first."""
        rows = reversed(self._rows.get(name, {}).values())
        return [row for row in rows if seq is None or row.seq < seq][:limit]

    async def heads(self) -> dict[str, int]:
        """Return the last sequence number of every journal."""
        return dict(self._heads)

    async def close(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._heads.clear()

    def _write(self, name: str, row_id: str, data: bytes) -> int:
        kept = self._rows.setdefault(name, {})
        self._heads[name] = seq = self._heads.get(name, 0) + 1
        kept.pop(row_id, None)  # what is written again becomes the newest
        kept[row_id] = Row(row_id, seq, data)
        return seq


def open_journal(url: str, *, connect_timeout_s: float, command_timeout_s: float) -> Journal:
    """Return the journals that ``url`` names: ``memory``, or a Redis server's.

    Nothing is connected yet: a server that is down now is picked up when it comes.
    """
    if url == "memory":
        return MemoryJournal()
    from semantic_layer.stores.redis_connection import RedisConnection  # noqa: PLC0415 - heavy
    from semantic_layer.stores.redis_journal import RedisJournal  # noqa: PLC0415 - heavy

    connection = RedisConnection(
        url,
        connect_timeout_s=connect_timeout_s,
        command_timeout_s=command_timeout_s,
        max_connections=4,
    )
    return RedisJournal(connection)
