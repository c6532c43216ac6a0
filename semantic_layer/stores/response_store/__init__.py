"""Where answers are kept: one protocol, in memory or in Redis."""

from collections.abc import Callable

from semantic_layer.stores.response_store.base import (
    Named,
    Names,
    Page,
    ResponseStore,
    Room,
    Selector,
)
from semantic_layer.stores.response_store.memory import MemoryResponseStore
from semantic_layer.stores.sealing import Sealer

__all__ = [
    "MemoryResponseStore",
    "Named",
    "Names",
    "Page",
    "ResponseStore",
    "Room",
    "Selector",
    "open_response_store",
]


def open_response_store(
    url: str,
    *,
    connect_timeout_s: float = 1.0,
    command_timeout_s: float = 1.0,
    max_connections: int = 32,
    on_reject: Callable[[str], None] | None = None,
    sealer: Sealer | None = None,
) -> ResponseStore:
    """Return the store that ``url`` names: ``memory``, ``redis://``, ``rediss://``, ``unix://``.

    Nothing is connected yet: a server that is down now is picked up when it comes.

    Raises:
        ValueError: the URL names no store.
    """
    if url == "memory":
        return MemoryResponseStore()
    if url.partition("://")[0] not in {"redis", "rediss", "unix"}:
        raise ValueError(f"no response store at {url!r}: memory, redis://, rediss:// or unix://")
    from semantic_layer.stores.response_store.redis import RedisResponseStore  # noqa: PLC0415 - heavy

    return RedisResponseStore(
        url,
        connect_timeout_s=connect_timeout_s,
        command_timeout_s=command_timeout_s,
        max_connections=max_connections,
        on_reject=on_reject,
        sealer=sealer,
    )
