"""Counts shared by every gateway over one Redis or Valkey."""

from collections.abc import Sequence

from semantic_layer.stores.counters import Counted, Verdict, Window, first_without_room
from semantic_layer.stores.redis_connection import RedisConnection
from semantic_layer.stores.response_store.keys import Keys

# KEYS: for each window its current and its previous slot
# ARGV: for each window cost, limit (-1: none), carry, TTL in s
# Returns the two counts of each window; adds the costs only if every window has room.
_ADMIT = """
local counts, room = {}, true
for i = 1, #KEYS / 2 do
  local current = tonumber(redis.call('GET', KEYS[2 * i - 1]) or 0)
  local previous = tonumber(redis.call('GET', KEYS[2 * i]) or 0)
  local at = 4 * (i - 1)
  local cost, limit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local used = current + previous * tonumber(ARGV[at + 3])
  counts[#counts + 1], counts[#counts + 2] = current, previous
  if limit >= 0 and used + math.max(cost, 1) > limit then room = false end
end
if not room then return counts end
for i = 1, #KEYS / 2 do
  local at = 4 * (i - 1)
  if tonumber(ARGV[at + 1]) > 0 then
    redis.call('INCRBY', KEYS[2 * i - 1], ARGV[at + 1])
    redis.call('EXPIRE', KEYS[2 * i - 1], ARGV[at + 4])
  end
end
return counts
"""


class RedisCounters:
    """`Counters` in Redis, every key with a TTL. One round trip an admission."""

    def __init__(self, connection: RedisConnection, prefix: str = "strata") -> None:
        self._connection = connection
        self._keys = Keys(prefix)
        self._admit = connection.client.register_script(_ADMIT)

    async def admit(self, owner: str, windows: Sequence[Window]) -> Verdict:
        """Add every window's cost if all have room, else add nothing.

        Raises:
            StoreUnavailable: Redis is slow or down.
        """
        keys = [
            self._keys.count(owner, window.name, slot)
            for window in windows
            for slot in (window.slot, window.slot - 1)
        ]
        args = [
            value
            for w in windows
            for value in (w.cost, -1 if w.limit is None else w.limit, repr(w.carry), w.ttl_s)
        ]
        replies = await self._connection.run(lambda: self._admit(keys=keys, args=args))
        counts = [int(reply) for reply in replies]
        counted = [
            Counted(current, previous)
            for current, previous in zip(counts[::2], counts[1::2], strict=True)
        ]
        return Verdict(first_without_room(windows, counted), counted)

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()
