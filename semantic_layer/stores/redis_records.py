"""Records shared by every gateway over one Redis or Valkey."""

import time
from collections.abc import Callable, Mapping, Sequence
from math import ceil

from semantic_layer.stores.redis_connection import RedisConnection, StoreFull
from semantic_layer.stores.response_store.keys import Keys

_DROPPED_AT_ONCE = 64


class RedisRecords:
    """`Records` in Redis, every key with a TTL.

    A sorted set of the keys by their end lets a full server drop those that end first.
    """

    def __init__(
        self,
        connection: RedisConnection,
        prefix: str = "strata",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connection = connection
        self._keys = Keys(prefix)
        self._clock = clock

    async def put(self, tenant: str, items: Mapping[str, bytes], ttl_s: float) -> None:
        """Keep each value under its name, replacing what was there. One round trip."""
        named = {self._keys.record(tenant, name): value for name, value in items.items()}
        try:
            await self._put(named, ttl_s)
        except StoreFull:
            await self._drop_oldest()
            await self._put(named, ttl_s)

    async def get(
        self, tenant: str, names: Sequence[str], renew_s: float | None = None
    ) -> list[bytes | None]:
        """Return the values in order, None where there is none; ``renew_s`` is their new life."""
        if not names:
            return []
        keys = [self._keys.record(tenant, name) for name in names]
        client = self._connection.client
        if renew_s is None:
            return list(await self._connection.run(lambda: client.mget(keys)))
        pipeline = client.pipeline(transaction=False)
        for key in keys:
            pipeline.getex(key, px=_ms(renew_s))
        ends = dict.fromkeys(keys, self._clock() + renew_s)
        pipeline.zadd(self._keys.records, ends, xx=True)
        replies = await self._connection.execute(pipeline)
        return list(replies[: len(keys)])

    async def delete(self, tenant: str, name: str) -> bool:
        """Forget one; say whether it was there."""
        key = self._keys.record(tenant, name)
        pipeline = self._connection.client.pipeline(transaction=False)
        pipeline.delete(key)
        pipeline.zrem(self._keys.records, key)
        return bool((await self._connection.execute(pipeline))[0])

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def _put(self, named: Mapping[str, bytes], ttl_s: float) -> None:
        now = self._clock()
        pipeline = self._connection.client.pipeline(transaction=False)
        for key, value in named.items():
            pipeline.set(key, value, px=_ms(ttl_s))
        pipeline.zadd(self._keys.records, dict.fromkeys(named, now + ttl_s))
        pipeline.zremrangebyscore(self._keys.records, "-inf", now)
        await self._connection.execute(pipeline)

    async def _drop_oldest(self) -> None:
        client, records = self._connection.client, self._keys.records
        keys = await self._connection.run(lambda: client.zrange(records, 0, _DROPPED_AT_ONCE - 1))
        if keys:
            pipeline = client.pipeline(transaction=False)
            pipeline.delete(*keys)
            pipeline.zrem(records, *keys)
            await self._connection.execute(pipeline)


def _ms(seconds: float) -> int:
    return max(1, ceil(seconds * 1000))
