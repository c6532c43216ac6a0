"""Browsing, invalidating, sweeping and health over both stores; decides nothing."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from semantic_layer.entry import Entry
from semantic_layer.errors import StoreError, StoreUnavailable
from semantic_layer.guarded import GuardedParts
from semantic_layer.stores.response_store import Page, Room, Selector
from semantic_layer.stores.vector_index import Place, Vector

T = TypeVar("T")
SIZE, EXPIRED, ASKED = "size", "expired", "asked"
_PAGE = 500
_DEADLINE_S = 10.0  # operators wait longer than requests do


@dataclass(frozen=True, slots=True)
class PartState:
    """Whether a part can do its work now, and if not, why; ``seconds`` is how long a ping took."""

    ok: bool
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Near:
    """An entry and the cosine (-1..1) of its text with the asked one."""

    entry: Entry
    similarity: float


class Upkeep:
    """What operators and the background do with the entries of one cache."""

    def __init__(
        self,
        parts: GuardedParts,
        clock: Callable[[], float],
        on_removed: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        self._parts = parts
        self._clock = clock
        self._on_removed = on_removed

    async def browse(self, selector: Selector, cursor: str | None, limit: int) -> Page:
        """Return a page of entries, newest first."""
        return await self._parts.breakers["redis"].call(
            lambda: self._parts.store.select(selector, cursor=cursor, limit=limit),
            deadline_s=_DEADLINE_S,
        )

    async def invalidate(self, selector: Selector, *, dry_run: bool) -> int:
        """Remove the selected entries from both stores, or only count them."""
        if selector.is_empty:
            raise ValueError("nothing is selected")
        if not dry_run:
            await self._withdraw(selector)
        num_entries, cursor = 0, None
        while True:
            page = await self.browse(selector, cursor, _PAGE)
            num_entries += len(page.entries) if dry_run else await self._remove(page.entries, ASKED)
            if page.cursor is None:
                return num_entries
            cursor = page.cursor

    async def near(
        self, vector: Vector, least: float, selector: Selector, *, dry_run: bool
    ) -> list[Near]:
        """Remove the selected entries at least so similar, or only list them.

        How similar the answers are that are on their way is not known: all of them are withdrawn.
        """
        if not dry_run:
            await self._withdraw(selector)
        most = await self._call("qdrant", self._parts.index.count)
        places = await self._call(
            "qdrant", lambda: self._parts.index.near(vector, least, selector.tenant, max(1, most))
        )
        found: list[Near] = []
        for start in range(0, len(places), _PAGE):
            found += await self._entries_at(places[start : start + _PAGE], selector)
        if not dry_run:
            await self._remove([near.entry for near in found], ASKED)
        return found

    async def _withdraw(self, selector: Selector) -> None:
        """Come before the removal: what is written in between is then found by it."""
        await self._call("redis", lambda: self._parts.store.withdraw(selector))

    async def _entries_at(self, places: Sequence[Place], selector: Selector) -> list[Near]:
        by_tenant: dict[str, list[Place]] = defaultdict(list)
        for place in places:
            by_tenant[place.tenant].append(place)
        found: dict[Place, Entry] = {}
        for tenant, own in by_tenant.items():
            ids = [place.entry_id for place in own]
            entries = await self._call("redis", partial(self._parts.store.get_many, tenant, ids))
            found |= {p: e for p, e in zip(own, entries, strict=True) if e is not None}
        return [
            Near(found[place], place.similarity)
            for place in places
            if place in found and selector.matches(found[place])
        ]

    async def trim(self, max_entries: int) -> int:
        """Remove the least used entries beyond a number; return how many."""
        over = await self._call("redis", self._parts.store.count) - max_entries
        if over <= 0:
            return 0
        members = await self._call("redis", lambda: self._parts.store.least_used(over))
        by_tenant: dict[str, list[str]] = defaultdict(list)
        for tenant, entry_id in members:
            by_tenant[tenant].append(entry_id)
        removed = 0
        for tenant, ids in by_tenant.items():
            removed += await self._remove_of(tenant, ids)
        self._on_removed(SIZE, removed)
        return removed

    async def sweep(self) -> int:
        """Drop what has expired from both indexes; return how many."""
        now = self._clock()
        sweeps = {
            "redis": lambda: self._parts.store.sweep(now),
            "qdrant": lambda: self._parts.index.sweep(now),
        }
        swept = [await self._count(part, sweep) for part, sweep in sweeps.items()]
        self._on_removed(EXPIRED, swept[0] or 0)
        return sum(number or 0 for number in swept)

    async def counts(self) -> dict[str, int]:
        """Return the number of entries by store; a store that is down is absent."""
        found = {
            "redis": await self._count("redis", self._parts.store.count),
            "qdrant": await self._count("qdrant", self._parts.index.count),
        }
        return {part: number for part, number in found.items() if number is not None}

    async def room(self) -> Room | None:
        """Tell how full the store's memory is; None where it is down, or nobody counts."""
        try:
            async with asyncio.timeout(_DEADLINE_S):
                return await self._parts.store.room()
        except (StoreError, TimeoutError):  # a server may forbid to be asked: no breaker's concern
            return None

    async def health(self) -> dict[str, PartState]:
        """Ask each part whether it can do its work."""
        embedder = self._parts.breakers["embedder"]
        return {
            "redis": await self._ping("redis", self._parts.store.ping),
            "qdrant": await self._ping("qdrant", self._parts.index.ping),
            "embedder": PartState(
                self._parts.embedder is not None and not embedder.is_open,
                "breaker open" if embedder.is_open else "",
            ),
        }

    async def _remove(self, entries: Iterable[Entry], why: str) -> int:
        by_tenant: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            by_tenant[entry.tenant].append(entry.entry_id)
        removed = 0
        for tenant, ids in by_tenant.items():
            removed += await self._remove_of(tenant, ids)
        self._on_removed(why, removed)
        return removed

    async def _remove_of(self, tenant: str, ids: list[str]) -> int:
        """Remove points first: one without its entry is harmless, the other way round is not."""
        await self._call("qdrant", lambda: self._parts.index.delete(tenant, ids))
        return len(await self._call("redis", lambda: self._parts.store.delete(tenant, ids)))

    async def _call(self, part: str, make: Callable[[], Awaitable[T]]) -> T:
        return await self._parts.breakers[part].call(make, deadline_s=_DEADLINE_S)

    async def _count(self, part: str, make: Callable[[], Awaitable[int]]) -> int | None:
        try:
            return await self._call(part, make)
        except StoreError:
            return None

    async def _ping(self, part: str, ping: Callable[[], Awaitable[None]]) -> PartState:
        started = time.perf_counter()
        try:
            await self._parts.breakers[part].call(ping)
        except StoreUnavailable as error:
            return PartState(ok=False, detail=str(error))
        return PartState(ok=True, seconds=time.perf_counter() - started)
