"""A response store and a vector index that break, hang or lose things when told to."""

import asyncio
from collections.abc import Sequence
from typing import Any

from semantic_layer.entry import Entry
from semantic_layer.errors import StoreUnavailable
from semantic_layer.stores.response_store import MemoryResponseStore
from semantic_layer.stores.vector_index import MemoryVectorIndex, Neighbour, Vector


class BreakableStore(MemoryResponseStore):
    """``down`` raises, ``hangs`` never answers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.down = self.hangs = False
        self.num_gets = 0

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        await self._trouble()
        self.num_gets += 1
        return await super().get(tenant, entry_id)

    async def get_many(self, tenant: str, entry_ids: Sequence[str]) -> list[Entry | None]:
        await self._trouble()
        return await super().get_many(tenant, entry_ids)

    async def put(self, entry: Entry, age_s: float = 0.0) -> bool:
        await self._trouble()
        return await super().put(entry, age_s)

    async def count(self) -> int:
        await self._trouble()
        return await super().count()

    async def ping(self) -> None:
        await self._trouble()

    async def _trouble(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.down:
            raise StoreUnavailable("the fake is down")


class BreakableIndex(MemoryVectorIndex):
    """``down`` raises on every call of a look-up or a write."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.down = False
        self.num_searches = 0

    async def search(
        self, vector: Vector, *, tenant: str, scope: str, now: float, limit: int
    ) -> list[Neighbour]:
        self._trouble()
        self.num_searches += 1
        return await super().search(vector, tenant=tenant, scope=scope, now=now, limit=limit)

    async def upsert(self, points: Any) -> None:
        self._trouble()
        await super().upsert(points)

    async def ping(self) -> None:
        self._trouble()

    def _trouble(self) -> None:
        if self.down:
            raise StoreUnavailable("the fake is down")
