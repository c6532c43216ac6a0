"""Browsing, invalidating, sweeping and health over both stores; decides nothing."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from semantic_layer.entry import Entry
from semantic_layer.errors import StoreError, StoreUnavailable
from semantic_layer.guarded import GuardedParts
from semantic_layer.response_store import Page, Selector

T = TypeVar("T")
_PAGE = 500
_DEADLINE_S = 10.0  # operators wait longer than requests do


@dataclass(frozen=True, slots=True)
class PartState:
    """Whether a part can do its work now, and if not, why."""

    ok: bool
    detail: str = ""


class Upkeep:
    """What operators and the background do with the entries of one cache."""

    def __init__(self, parts: GuardedParts, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._clock = clock

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
        num_entries, cursor = 0, None
        while True:
            page = await self.browse(selector, cursor, _PAGE)
            num_entries += len(page.entries) if dry_run else await self._remove(page.entries)
            if page.cursor is None:
                return num_entries
            cursor = page.cursor

    async def sweep(self) -> int:
        """Drop what has expired from both indexes; return how many."""
        now = self._clock()
        sweeps = {
            "redis": lambda: self._parts.store.sweep(now),
            "qdrant": lambda: self._parts.index.sweep(now),
        }
        swept = [await self._count(part, sweep) for part, sweep in sweeps.items()]
        return sum(number or 0 for number in swept)

    async def counts(self) -> dict[str, int]:
        """Return the number of entries by store; a store that is down is absent."""
        found = {
            "redis": await self._count("redis", self._parts.store.count),
            "qdrant": await self._count("qdrant", self._parts.index.count),
        }
        return {part: number for part, number in found.items() if number is not None}

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

    async def _remove(self, entries: Iterable[Entry]) -> int:
        by_tenant: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            by_tenant[entry.tenant].append(entry.entry_id)
        removed = 0
        for tenant, ids in by_tenant.items():
            removed += await self._remove_of(tenant, ids)
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
        try:
            await self._parts.breakers[part].call(ping)
        except StoreUnavailable as error:
            return PartState(ok=False, detail=str(error))
        return PartState(ok=True)
