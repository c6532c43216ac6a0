"""Named bytes of a tenant with a time to live, beside the cached answers."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol


class Records(Protocol):
    """Where records are kept.

    Raises:
        StoreUnavailable: from any method, when the store is slow or down.
    """

    async def put(self, tenant: str, items: Mapping[str, bytes], ttl_s: float) -> None:
        """Keep each value under its name, replacing what was there."""
        ...

    async def get(
        self, tenant: str, names: Sequence[str], renew_s: float | None = None
    ) -> list[bytes | None]:
        """Return the values in order, None where there is none; ``renew_s`` is their new life."""
        ...

    async def delete(self, tenant: str, name: str) -> bool:
        """Forget one; say whether it was there."""
        ...

    async def close(self) -> None:
        """Release everything; idempotent."""
        ...


class MemoryRecords:
    """Records of this process alone."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._values: dict[tuple[str, str], tuple[bytes, float]] = {}
        self._sweep_at = 0.0

    async def put(self, tenant: str, items: Mapping[str, bytes], ttl_s: float) -> None:
        """Keep each value under its name, replacing what was there."""
        now = self._clock()
        for name, value in items.items():
            self._values[tenant, name] = (value, now + ttl_s)
        self._sweep(now)

    async def get(
        self, tenant: str, names: Sequence[str], renew_s: float | None = None
    ) -> list[bytes | None]:
        """Return the values in order, None where there is none; ``renew_s`` is their new life."""
        now = self._clock()
        found: list[bytes | None] = []
        for name in names:
            value, expires_at = self._values.get((tenant, name), (None, 0.0))
            found.append(value if expires_at > now else None)
            if found[-1] is not None and renew_s is not None:
                self._values[tenant, name] = (found[-1], now + renew_s)
        return found

    async def delete(self, tenant: str, name: str) -> bool:
        """Forget one; say whether it was there."""
        _, expires_at = self._values.pop((tenant, name), (b"", 0.0))
        return expires_at > self._clock()

    async def close(self) -> None:
        """Forget everything."""
        self._values.clear()

    def _sweep(self, now: float) -> None:
        if now < self._sweep_at:
            return
        self._sweep_at = now + 60
        self._values = {name: value for name, value in self._values.items() if value[1] > now}


def open_records(url: str, *, connect_timeout_s: float, command_timeout_s: float) -> Records:
    """Return the records that ``url`` names: ``memory``, or a Redis server's.

    Nothing is connected yet: a server that is down now is picked up when it comes.
    """
    if url == "memory":
        return MemoryRecords()
    from semantic_layer.stores.redis_connection import RedisConnection  # noqa: PLC0415 - heavy
    from semantic_layer.stores.redis_records import RedisRecords  # noqa: PLC0415 - heavy

    connection = RedisConnection(
        url, connect_timeout_s=connect_timeout_s, command_timeout_s=command_timeout_s
    )
    return RedisRecords(connection)
