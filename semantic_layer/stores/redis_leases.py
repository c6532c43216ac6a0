"""Leases shared by every gateway over one Redis or Valkey."""

import asyncio
import secrets
from contextlib import suppress

from semantic_layer.errors import StoreUnavailable
from semantic_layer.stores.redis_connection import RedisConnection
from semantic_layer.stores.response_store.keys import Keys

TTL_S = 6.0
RENEWALS = 3  # within one time to live

# KEYS: lease. ARGV: its holder's token, time to live in ms, 0 to release
# Only the holder's own lease is touched: after an expiry it may be another's.
_KEEP = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then return redis.call('DEL', KEYS[1]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""


class RedisLeases:
    """`Leases` in Redis. A holder that dies loses its lease within ``ttl_s``."""

    def __init__(
        self, connection: RedisConnection, prefix: str = "strata", ttl_s: float = TTL_S
    ) -> None:
        self._connection = connection
        self._keys = Keys(prefix)
        self._ttl_ms = round(ttl_s * 1000)
        self._keep = connection.client.register_script(_KEEP)

    async def acquire(self, name: str) -> "RedisLease | None":
        """Return the lease, None while another one holds it. One round trip."""
        key, token = self._keys.lease(name), secrets.token_hex(16)
        granted = await self._connection.run(
            lambda: self._connection.client.set(key, token, px=self._ttl_ms, nx=True)
        )
        return RedisLease(self, key, token) if granted else None

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def keep(self, key: str, token: str, ttl_ms: int) -> bool:
        """Set how long a lease lives on, 0 to end it; say whether it was still the holder's."""
        kept = await self._connection.run(lambda: self._keep(keys=[key], args=[token, ttl_ms]))
        return bool(kept)

    @property
    def ttl_ms(self) -> int:
        """How long a lease lives on without its holder."""
        return self._ttl_ms


class RedisLease:
    """One held lease, renewed in the background until it is released or lost."""

    def __init__(self, leases: RedisLeases, key: str, token: str) -> None:
        self._leases = leases
        self._key = key
        self._token = token
        self._renewing = asyncio.create_task(self._renew())

    async def release(self) -> None:
        """Let the next one have it."""
        self._renewing.cancel()
        with suppress(StoreUnavailable):
            await self._leases.keep(self._key, self._token, 0)

    async def _renew(self) -> None:
        is_ours = True
        while is_ours:
            await asyncio.sleep(self._leases.ttl_ms / 1000 / RENEWALS)
            with suppress(StoreUnavailable):
                is_ours = await self._leases.keep(self._key, self._token, self._leases.ttl_ms)
