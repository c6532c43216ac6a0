"""Who may do a piece of work that several processes would do at once. Knows no requests."""

from typing import Protocol


class Lease(Protocol):
    """The right to a piece of work; kept up until it is released, lost when its holder dies."""

    async def release(self) -> None:
        """Let the next one have it; idempotent, never raises for a store."""
        ...


class Leases(Protocol):
    """Gives leases by name."""

    async def acquire(self, name: str) -> Lease | None:
        """Return the lease, None while another one holds it.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        ...

    async def close(self) -> None:
        """Release everything; idempotent."""
        ...


def open_leases(url: str, *, connect_timeout_s: float, command_timeout_s: float) -> Leases:
    """Return the leases kept by the Redis server at ``url``. Nothing is connected yet."""
    from semantic_layer.stores.redis_connection import RedisConnection  # noqa: PLC0415 - heavy
    from semantic_layer.stores.redis_leases import RedisLeases  # noqa: PLC0415 - heavy

    connection = RedisConnection(
        url,
        connect_timeout_s=connect_timeout_s,
        command_timeout_s=command_timeout_s,
        guarded=True,
    )
    return RedisLeases(connection)
