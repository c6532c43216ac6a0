"""Entries in this process's memory: nothing to install, nothing kept over a restart."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice

from semantic_layer.entry import Entry
from semantic_layer.stores.response_store.base import WITHDRAWN_S, Named, Page, Room, Selector
from semantic_layer.stores.response_store.cursor import Position, decode_cursor, encode_cursor
from semantic_layer.stores.response_store.keys import member_name


class MemoryResponseStore:
    """Keeps up to ``max_entries``; the least recently read or written goes first."""

    def __init__(
        self, max_entries: int = 100_000, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._max_entries = max_entries
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._withdrawn: OrderedDict[Selector, float] = OrderedDict()

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Return the live entry, or None."""
        key = (tenant, entry_id)
        entry = self._entries.get(key)
        if entry is None or entry.expires_at <= self._clock():
            self._entries.pop(key, None)
            return None
        self._entries.move_to_end(key)
        return entry

    async def get_many(self, tenant: str, entry_ids: Sequence[str]) -> list[Entry | None]:
        """Return one result per id, in order."""
        return [await self.get(tenant, entry_id) for entry_id in entry_ids]

    async def put(self, entry: Entry, age_s: float = 0.0) -> bool:
        """Keep the entry until its ``expires_at``, unless it has been withdrawn."""
        if await self.is_withdrawn(entry, age_s):
            return False
        key = (entry.tenant, entry.entry_id)
        self._entries.pop(key, None)
        if entry.expires_at <= self._clock():
            return False
        self._entries[key] = entry
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        return True

    async def withdraw(self, selector: Selector) -> None:
        """Have answers of these names that are on their way now never be kept."""
        now = self._clock()
        self._withdrawn.pop(selector, None)
        self._withdrawn[selector] = now
        while next(iter(self._withdrawn.values())) < now - WITHDRAWN_S:
            self._withdrawn.popitem(last=False)

    async def is_withdrawn(self, answer: Named, age_s: float) -> bool:
        """Say whether an answer was withdrawn within the last ``age_s``."""
        since = self._clock() - age_s
        for selector, at in reversed(self._withdrawn.items()):
            if at <= since:
                return False
            if selector.names(answer):
                return True
        return False

    async def delete(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Forget these entries; return the ids that existed."""
        now = self._clock()
        gone = [(entry_id, self._entries.pop((tenant, entry_id), None)) for entry_id in entry_ids]
        return [entry_id for entry_id, entry in gone if entry and entry.expires_at > now]

    async def select(self, selector: Selector, *, cursor: str | None, limit: int) -> Page:
        """Return a page of matching live entries, newest first."""
        after, now = decode_cursor(cursor), self._clock()
        live = (e for e in self._entries.values() if e.expires_at > now and selector.matches(e))
        placed = [(_position(entry), entry) for entry in live]
        rest = [pair for pair in placed if after is None or pair[0].is_after(after)]
        rest.sort(key=lambda pair: (pair[0].created_at, pair[0].member), reverse=True)
        page = rest[:limit]
        more = encode_cursor(page[-1][0]) if page and len(rest) > limit else None
        return Page(tuple(entry for _, entry in page), more)

    async def count(self) -> int:
        """Return the number of live entries."""
        now = self._clock()
        return sum(entry.expires_at > now for entry in self._entries.values())

    async def least_used(self, num: int) -> list[tuple[str, str]]:
        """Return the tenant and id of so many entries that were used longest ago."""
        return list(islice(self._entries, num))

    async def sweep(self, now: float) -> int:
        """Drop the entries that expired by ``now``; return how many."""
        expired = [key for key, entry in self._entries.items() if entry.expires_at <= now]
        for key in expired:
            del self._entries[key]
        return len(expired)

    async def room(self) -> Room | None:
        """Tell nothing: the memory is the process's."""
        return None

    async def ping(self) -> None:
        """Return at once."""

    async def close(self) -> None:
        """Forget everything."""
        self._entries.clear()


def _position(entry: Entry) -> Position:
    return Position(entry.created_at, member_name(entry.tenant, entry.entry_id))
