"""An index of one process that learns what others store. Knows no engine and no store's client.

Each process searches its own index; a feed carries the points between them. A point whose entry
is gone is forgotten by the cache that meets it, so removals need no word.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from semantic_layer.errors import StoreUnavailable
from semantic_layer.stores.vector_index.base import Neighbour, Place, Point, Vector, VectorIndex

PAUSE_S = 1.0
START = "0-0"


class PointFeed(Protocol):
    """Carries points from whoever stores them to everybody else, in order, the last ones kept.

    Raises:
        StoreUnavailable: from any method, when the feed is slow or down.
    """

    async def publish(self, points: Sequence[Point]) -> None:
        """Tell the others."""
        ...

    async def read(self, after: str) -> tuple[list[Point], str]:
        """Wait a while for what others published after a position; return it and the new one."""
        ...

    async def close(self) -> None:
        """Release everything; idempotent."""
        ...


class SharedIndex:
    """`VectorIndex` over an own one and a feed.

    ``position_file`` remembers how far the feed was read. A process that was away for longer than
    the feed keeps points finds the missed ones as exact repeats only.
    """

    def __init__(
        self,
        own: VectorIndex,
        feed: PointFeed,
        *,
        position_file: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._own = own
        self._feed = feed
        self._file = position_file
        self._clock = clock
        self._position = START
        if position_file is not None and position_file.exists():
            self._position = position_file.read_text(encoding="utf-8").strip() or START

    async def upsert(self, points: Sequence[Point]) -> None:
        """Add points here, and tell the others if the feed can."""
        await self._own.upsert(points)
        with suppress(StoreUnavailable):
            await self._feed.publish(points)

    async def search(
        self, vector: Vector, *, tenant: str, scope: str, now: float, limit: int
    ) -> list[Neighbour]:
        """Return the nearest live points of this tenant and scope, most similar first."""
        return await self._own.search(vector, tenant=tenant, scope=scope, now=now, limit=limit)

    async def near(
        self, vector: Vector, least_similarity: float, tenant: str | None, limit: int
    ) -> list[Place]:
        """Return the points of any scope at least so similar, most similar first."""
        return await self._own.near(vector, least_similarity, tenant, limit)

    async def missing(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Return those of the ids that have no point here."""
        return await self._own.missing(tenant, entry_ids)

    async def delete(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Forget these points here."""
        await self._own.delete(tenant, entry_ids)

    async def sweep(self, now: float) -> int:
        """Delete points that expired by ``now``; return how many."""
        return await self._own.sweep(now)

    async def retire_others(self, now: float) -> int:
        """Remove the collections of other embedders that nobody needs; return how many."""
        return await self._own.retire_others(now)

    async def count(self) -> int:
        """Return the number of points here."""
        return await self._own.count()

    async def ping(self) -> None:
        """Return when the own index answers."""
        await self._own.ping()

    async def close(self) -> None:
        """Close the own index and the feed."""
        await self._own.close()
        await self._feed.close()

    async def follow(self) -> None:
        """Learn what others store, for ever."""
        while True:
            try:
                await self.learn()
            except StoreUnavailable:
                await asyncio.sleep(PAUSE_S)

    async def learn(self) -> int:
        """Take over what others have stored since the last time; return how many points.

        Raises:
            StoreUnavailable: the feed or the own index is slow or down.
        """
        points, position = await self._feed.read(self._position)
        live = [point for point in points if point.expires_at > self._clock()]
        if live:
            await self._own.upsert(live)
        if position != self._position:
            self._position = position
            if self._file is not None:
                self._file.write_text(position, encoding="utf-8")
        return len(live)
