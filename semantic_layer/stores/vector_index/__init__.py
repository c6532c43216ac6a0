"""Where embedded texts are found: one protocol, in memory, in process, or on a Qdrant server."""

from pathlib import Path

from semantic_layer.stores.vector_index.base import (
    Neighbour,
    Place,
    Point,
    Vector,
    VectorIndex,
    collection_name,
    point_id,
)
from semantic_layer.stores.vector_index.memory import MemoryVectorIndex
from semantic_layer.stores.vector_index.shared import PointFeed, SharedIndex

__all__ = [
    "MemoryVectorIndex",
    "Neighbour",
    "Place",
    "Point",
    "PointFeed",
    "SharedIndex",
    "Vector",
    "VectorIndex",
    "collection_name",
    "open_point_feed",
    "open_vector_index",
    "point_id",
]


def open_vector_index(
    url: str, *, folder: Path, collection: str, dim: int, api_key: str | None = None
) -> VectorIndex:
    """Return the index that ``url`` names: ``memory``, ``embedded`` or ``http(s)://``.

    ``folder`` holds the embedded engine's collections. A server need not be up yet.

    Raises:
        StoreLocked: another process has the embedded collection open.
        ValueError: the URL names no index.
    """
    match url.partition("://")[0]:
        case "memory":
            return MemoryVectorIndex(dim)
        case "embedded":
            from semantic_layer.stores.vector_index.edge import EdgeVectorIndex  # noqa: PLC0415 - heavy

            return EdgeVectorIndex(folder, collection, dim)
        case "http" | "https":
            from semantic_layer.stores.vector_index.server import (  # noqa: PLC0415 - heavy
                ServerVectorIndex,
                connect,
            )

            return ServerVectorIndex(connect(url, api_key=api_key), collection, dim)
        case _:
            raise ValueError(f"no vector index at {url!r}: memory, embedded or http(s)://")


def open_point_feed(url: str, name: str, *, connect_timeout_s: float) -> PointFeed:
    """Return the feed of this name on the Redis server at ``url``. Nothing is connected yet."""
    from semantic_layer.stores.redis_connection import RedisConnection  # noqa: PLC0415 - heavy
    from semantic_layer.stores.redis_feed import WAIT_MS, RedisFeed  # noqa: PLC0415 - heavy

    connection = RedisConnection(
        url,
        connect_timeout_s=connect_timeout_s,
        command_timeout_s=connect_timeout_s + WAIT_MS / 1000,
    )
    return RedisFeed(connection, name)
