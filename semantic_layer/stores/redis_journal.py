"""Journals shared by every gateway over one Redis or Valkey."""

from collections.abc import Mapping, Sequence
from typing import Any

from semantic_layer.stores.journal import Row
from semantic_layer.stores.redis_connection import RedisConnection, StoreFull
from semantic_layer.stores.response_store.keys import Keys

_DROPPED_SHARE = 10  # of a full server's longest journal, one in so many rows
_DROPPED_MOST = 1000

# KEYS: heads, order, rows. ARGV: name, most, then for each row its id and data
# Returns the last sequence number. Above ``most`` the oldest written go, a few at a time.
_PUT = """
local seq
for i = 3, #ARGV, 2 do
  seq = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('ZADD', KEYS[2], seq, ARGV[i])
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
end
local over = math.min(redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[2]), 1000)
if over > 0 then
  local old = redis.call('ZRANGE', KEYS[2], 0, over - 1)
  redis.call('ZREM', KEYS[2], unpack(old))
  redis.call('HDEL', KEYS[3], unpack(old))
end
return seq
"""

# KEYS: heads, order, rows. ARGV: name, id, data, expected sequence number
# Returns the new one, or 0 when another write came between.
_SWAP = """
local before = redis.call('ZSCORE', KEYS[2], ARGV[2]) or 0
if tonumber(before) ~= tonumber(ARGV[4]) then return 0 end
local seq = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('ZADD', KEYS[2], seq, ARGV[2])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
return seq
"""


class RedisJournal:
    """`Journal` in Redis: per journal a hash of rows and a sorted set of ids by sequence number.

    A server that is full loses the oldest tenth of its longest journal.
    """

    def __init__(self, connection: RedisConnection, prefix: str = "strata") -> None:
        self._connection = connection
        self._client = connection.client
        self._keys = Keys(prefix)
        self._put = self._client.register_script(_PUT)
        self._swap = self._client.register_script(_SWAP)

    async def put(self, name: str, rows: Mapping[str, bytes], *, most: int) -> int:
        """Write rows, replacing those of the same ids; return the last one's sequence number."""
        if not rows:
            return (await self.heads()).get(name, 0)
        args = [name, most, *(part for row in rows.items() for part in row)]
        return int(await self._write(self._put, name, args))

    async def swap(self, name: str, row_id: str, data: bytes, *, expected: int) -> int | None:
        """Write a row if its sequence number is ``expected``; None when it isn't."""
        return int(await self._write(self._swap, name, [name, row_id, data, expected])) or None

    async def get(self, name: str, row_ids: Sequence[str]) -> list[Row | None]:
        """Return one result per id, in order. One round trip."""
        if not row_ids:
            return []
        order, rows = self._keys.journal_order(name), self._keys.journal_rows(name)
        pipeline = self._client.pipeline(transaction=True)
        for row_id in row_ids:
            pipeline.zscore(order, row_id)
        pipeline.hmget(rows, list(row_ids))
        *seqs, values = await self._connection.execute(pipeline)
        return [
            None if seq is None or value is None else Row(row_id, int(seq), value)
            for row_id, seq, value in zip(row_ids, seqs, values, strict=True)
        ]

    async def after(self, name: str, seq: int, limit: int) -> list[Row]:
        """Return the next rows written after ``seq``, oldest first."""
        order = self._keys.journal_order(name)
        pairs = await self._connection.run(
            lambda: self._client.zrangebyscore(
                order, f"({seq}", "+inf", start=0, num=limit, withscores=True
            )
        )
        return await self._rows(name, pairs)

    async def before(self, name: str, seq: int | None, limit: int) -> list[Row]:
        """Return the rows written before ``seq`` (None: the end), newest first."""
        order, end = self._keys.journal_order(name), "+inf" if seq is None else f"({seq}"
        pairs = await self._connection.run(
            lambda: self._client.zrevrangebyscore(
                order, end, "-inf", start=0, num=limit, withscores=True
            )
        )
        return await self._rows(name, pairs)

    async def heads(self) -> dict[str, int]:
        """Return the last sequence number of every journal. One round trip."""
        found = await self._connection.run(lambda: self._client.hgetall(self._keys.journal_heads))
        return {name.decode(): int(seq) for name, seq in found.items()}

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def _rows(self, name: str, pairs: Sequence[tuple[bytes, float]]) -> list[Row]:
        if not pairs:
            return []
        key, ids = self._keys.journal_rows(name), [row_id for row_id, _ in pairs]
        values = await self._connection.run(lambda: self._client.hmget(key, ids))
        return [
            Row(row_id.decode(), int(seq), value)
            for (row_id, seq), value in zip(pairs, values, strict=True)
            if value is not None
        ]

    async def _write(self, script: Any, name: str, args: Sequence[Any]) -> Any:
        keys = [
            self._keys.journal_heads,
            self._keys.journal_order(name),
            self._keys.journal_rows(name),
        ]
        try:
            return await self._connection.run(lambda: script(keys=keys, args=args))
        except StoreFull:
            await self._make_room()
            return await self._connection.run(lambda: script(keys=keys, args=args))

    async def _make_room(self) -> None:
        names = list(await self.heads())
        pipeline = self._client.pipeline(transaction=False)
        for name in names:
            pipeline.zcard(self._keys.journal_order(name))
        counts = await self._connection.execute(pipeline)
        count, name = max(zip(counts, names, strict=True), default=(0, ""))
        if count < _DROPPED_SHARE:
            return
        order, last = self._keys.journal_order(name), min(count // _DROPPED_SHARE, _DROPPED_MOST)
        old = await self._connection.run(lambda: self._client.zrange(order, 0, last - 1))
        pipeline = self._client.pipeline(transaction=True)
        pipeline.zrem(order, *old)
        pipeline.hdel(self._keys.journal_rows(name), *old)
        await self._connection.execute(pipeline)
