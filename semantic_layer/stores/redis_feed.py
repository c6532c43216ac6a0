"""Points between the gateways over one Redis or Valkey: a stream that keeps the last ones."""

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from semantic_layer.stores.redis_connection import RedisConnection
from semantic_layer.stores.response_store.keys import Keys
from semantic_layer.stores.vector_index import Point

MAX_POINTS = 20_000
BATCH = 256
WAIT_MS = 1000
KEPT_S = 30 * 86400
POINT, ORIGIN = b"p", b"o"


class PointRow(msgspec.Struct, frozen=True, array_like=True):
    """A point as it goes over the feed; the vector is little-endian float32."""

    entry_id: str
    tenant: str
    scope: str
    intent: str | None
    expires_at: float
    tags: tuple[str, ...]
    vector: bytes


class RedisFeed:
    """`PointFeed` in one Redis stream; ``name`` keeps the points of other embedders apart."""

    def __init__(
        self,
        connection: RedisConnection,
        name: str,
        prefix: str = "strata",
        *,
        wait_ms: int = WAIT_MS,
        max_points: int = MAX_POINTS,
    ) -> None:
        self._connection = connection
        self._key = Keys(prefix).feed(name)
        self._origin = secrets.token_bytes(8)
        self._wait_ms = wait_ms
        self._max_points = max_points

    async def publish(self, points: Sequence[Point]) -> None:
        """Add the points to the stream. One round trip."""
        pipeline = self._connection.client.pipeline(transaction=False)
        for point in points:
            fields = {POINT: _encode(point), ORIGIN: self._origin}
            pipeline.xadd(self._key, fields, maxlen=self._max_points, approximate=True)
        pipeline.expire(self._key, KEPT_S)
        await self._connection.execute(pipeline)

    async def read(self, after: str) -> tuple[list[Point], str]:
        """Wait for what others published after a position of the stream."""
        replies: Any = await self._connection.run(
            lambda: self._connection.client.xread(
                {self._key: after}, count=BATCH, block=self._wait_ms
            )
        )
        if not replies:
            return [], after
        [(_, rows)] = replies
        points = [
            point
            for _, fields in rows
            if fields.get(ORIGIN) != self._origin and (point := _decode(fields.get(POINT)))
        ]
        return points, rows[-1][0].decode()

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()


_decoder = msgspec.msgpack.Decoder(PointRow)


def _encode(point: Point) -> bytes:
    return msgspec.msgpack.encode(
        PointRow(
            point.entry_id,
            point.tenant,
            point.scope,
            point.intent,
            point.expires_at,
            point.tags,
            point.vector.astype("<f4").tobytes(),
        )
    )


def _decode(data: bytes | None) -> Point | None:
    """Return a point; None for what another version wrote."""
    try:
        row = _decoder.decode(data or b"")
        vector = np.frombuffer(row.vector, "<f4").astype(np.float32)
    except (msgspec.MsgspecError, ValueError):
        return None
    return Point(row.entry_id, row.tenant, row.scope, row.intent, row.expires_at, row.tags, vector)
