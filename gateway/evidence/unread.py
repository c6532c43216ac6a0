"""Rows that the encryption key in force cannot read: counted, never touched."""

import asyncio
import zlib
from collections import Counter
from collections.abc import Sequence

import msgspec

from semantic_layer import Journal, Row

NEWEST = 1000


async def count_unread(journal: Journal) -> dict[str, int]:
    """Return how many of each journal's `NEWEST` rows cannot be read, by the journal's kind.

    Raises:
        StoreUnavailable: the store is slow or down.
    """
    unread: Counter[str] = Counter()
    for name in await journal.heads():
        rows = await journal.before(name, None, NEWEST)
        kind, _, _ = name.partition(":")
        unread[kind] += await asyncio.to_thread(_count, rows)
    return dict(sorted((+unread).items()))


def _count(rows: Sequence[Row]) -> int:
    return sum(row.is_shut or not _is_plain(row.data) for row in rows)


def _is_plain(data: bytes) -> bool:
    """Say whether data is what rows hold where nothing is encrypted, or marks one taken back."""
    if not data:
        return True
    try:
        msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, ValueError):
        return _is_packed(data)
    return True


def _is_packed(data: bytes) -> bool:
    try:
        zlib.decompress(data)
    except zlib.error:
        return False
    return True
