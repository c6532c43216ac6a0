"""Keeps what this process knows of journals up to date with what any gateway writes."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from semantic_layer.errors import StoreUnavailable
from semantic_layer.stores.journal import Journal, Row

EVERY_S = 0.25
_AT_ONCE = 1000


class Reader(Protocol):
    """What follows one kind of journal."""

    def take(self, rows: Sequence[Row]) -> None:
        """Learn of rows, oldest first; some may be known already."""
        ...

    def forget(self) -> None:
        """Forget everything: the store has lost it."""
        ...


class Follower:
    """Tells readers what is new in their journals. Known by ``name``, or ``kind:`` of ``kind:x``.

    A store that is down is asked again; until it is back the readers keep what they know.
    """

    def __init__(
        self, journal: Journal, readers: Mapping[str, Reader], every_s: float = EVERY_S
    ) -> None:
        self._journal = journal
        self._readers = readers
        self._every_s = every_s
        self._seen: dict[str, int] = {}
        self._reading = asyncio.Lock()

    async def follow(self) -> None:
        """Read for ever."""
        while True:
            with suppress(StoreUnavailable):
                await self.catch_up()
            await asyncio.sleep(self._every_s)

    async def catch_up(self) -> None:
        """Read everything that is new.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        async with self._reading:
            heads = await self._journal.heads()
            lost = [name for name, seq in self._seen.items() if heads.get(name, 0) < seq]
            for name in lost:
                self._forget(name)
            for name, head in heads.items():
                reader = self._reader(name)
                if reader is not None and self._seen.get(name, 0) < head:
                    await self._read(name, head, reader)

    async def _read(self, name: str, head: int, reader: Reader) -> None:
        while self._seen.get(name, 0) < head:
            rows = await self._journal.after(name, self._seen.get(name, 0), _AT_ONCE)
            reader.take(rows)
            self._seen[name] = rows[-1].seq if rows else head

    def _forget(self, name: str) -> None:
        """Forget a kind of journal as a whole, and read what is left of it from the start."""
        reader = self._reader(name)
        if reader is not None:
            reader.forget()
        for other in [other for other in self._seen if self._reader(other) is reader]:
            del self._seen[other]

    def _reader(self, name: str) -> Reader | None:
        kind, colon, _ = name.partition(":")
        return self._readers.get(f"{kind}{colon}")
