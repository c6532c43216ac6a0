"""A Qdrant server over its HTTP API; the only file that names its client."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException

from semantic_layer.errors import StoreUnavailable
from semantic_layer.stores.vector_index.base import (
    COLLECTIONS,
    Neighbour,
    Place,
    Point,
    Vector,
    point_id,
)

T = TypeVar("T")

_BATCH = 256  # points of one request
_FIELDS: dict[str, Any] = {
    "tenant": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "scope": models.PayloadSchemaType.KEYWORD,
    "expires_at": models.PayloadSchemaType.FLOAT,
}


def connect(url: str, *, api_key: str | None = None, timeout_s: int = 5) -> AsyncQdrantClient:
    """Return a client of the server at ``url``; nothing is sent yet."""
    return AsyncQdrantClient(url=url, api_key=api_key, timeout=timeout_s, check_compatibility=False)


class ServerVectorIndex:
    """A `VectorIndex` in one collection, made with its payload indexes when absent.

    The collection is looked for at the first call, and again after any failure, so a server that
    is down at the start, or comes back empty, is taken up by itself. ``client`` is closed with
    the index.
    """

    def __init__(self, client: AsyncQdrantClient, collection: str, dim: int) -> None:
        self._client = client
        self._collection = collection
        self._dim = dim
        self._is_ready = False

    async def upsert(self, points: Sequence[Point]) -> None:
        """Add points, replacing those of the same tenant and entry id."""
        for start in range(0, len(points), _BATCH):
            batch = [_to_client(point) for point in points[start : start + _BATCH]]
            await self._run(partial(self._client.upsert, self._collection, batch))

    async def search(
        self, vector: Vector, *, tenant: str, scope: str, now: float, limit: int
    ) -> list[Neighbour]:
        """Return the nearest live points of this tenant and scope, most similar first."""
        wanted = models.Filter(must=[_is("tenant", tenant), _is("scope", scope), _after(now)])
        reply = await self._run(
            lambda: self._client.query_points(
                self._collection,
                query=vector.tolist(),
                query_filter=wanted,
                limit=limit,
                with_payload=["entry_id"],
            )
        )
        return [_neighbour(hit) for hit in reply.points]

    async def near(
        self, vector: Vector, least_similarity: float, tenant: str | None, limit: int
    ) -> list[Place]:
        """Return the points of any scope at least so similar, most similar first."""
        wanted = None if tenant is None else models.Filter(must=[_is("tenant", tenant)])
        reply = await self._run(
            lambda: self._client.query_points(
                self._collection,
                query=vector.tolist(),
                query_filter=wanted,
                limit=limit,
                score_threshold=least_similarity,
                with_payload=["tenant", "entry_id"],
            )
        )
        found = [(hit.payload or {}, hit.score) for hit in reply.points]
        return [Place(payload["tenant"], payload["entry_id"], score) for payload, score in found]

    async def missing(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Return those of the ids that have no point here."""
        ids = {str(point_id(tenant, entry_id)): entry_id for entry_id in entry_ids}
        records = await self._run(
            lambda: self._client.retrieve(
                self._collection, list(ids), with_payload=False, with_vectors=False
            )
        )
        there = {str(record.id) for record in records}
        return [entry_id for id_, entry_id in ids.items() if id_ not in there]

    async def delete(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Forget these points; unknown ids are ignored."""
        ids: list[Any] = [str(point_id(tenant, entry_id)) for entry_id in entry_ids]
        for start in range(0, len(ids), _BATCH):
            selector = models.PointIdsList(points=ids[start : start + _BATCH])
            await self._run(partial(self._client.delete, self._collection, selector))

    async def sweep(self, now: float) -> int:
        """Delete points that expired by ``now``; return how many."""
        expired = models.Filter(must_not=[_after(now)])
        found = await self._run(lambda: self._client.count(self._collection, expired))
        if found.count:
            selector = models.FilterSelector(filter=expired)
            await self._run(lambda: self._client.delete(self._collection, selector))
        return int(found.count)

    async def retire_others(self, now: float) -> int:
        """Remove the collections of other embedders in which nothing lives any more.

        Others are left: another gateway may be at work with its own embedder.
        """
        num_removed = 0
        for each in (await self._run(self._client.get_collections)).collections:
            if each.name == self._collection or not each.name.startswith(COLLECTIONS):
                continue
            live = models.Filter(must=[_after(now)])
            found = await self._run(partial(self._client.count, each.name, live))
            if not found.count:
                num_removed += bool(
                    await self._run(partial(self._client.delete_collection, each.name))
                )
        return num_removed

    async def count(self) -> int:
        """Return the number of points."""
        return int((await self._run(lambda: self._client.count(self._collection))).count)

    async def ping(self) -> None:
        """Return when the server answers and has the collection."""
        await self._run(lambda: self._client.get_collection(self._collection))

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def _run(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            if not self._is_ready:
                await self._prepare()
            return await call()
        except (ApiException, QdrantException, httpx.HTTPError, OSError, ValueError) as error:
            self._is_ready = False
            raise StoreUnavailable(f"qdrant: {error}") from error

    async def _prepare(self) -> None:
        if not await self._client.collection_exists(self._collection):
            await self._create()
        for field, schema in _FIELDS.items():
            await self._client.create_payload_index(self._collection, field, schema)
        self._is_ready = True

    async def _create(self) -> None:
        params = models.VectorParams(size=self._dim, distance=models.Distance.COSINE)
        try:
            await self._client.create_collection(self._collection, vectors_config=params)
        except (ApiException, ValueError):
            if not await self._client.collection_exists(self._collection):  # made by another?
                raise


def _to_client(point: Point) -> models.PointStruct:
    return models.PointStruct(
        id=str(point_id(point.tenant, point.entry_id)),
        vector=point.vector.tolist(),
        payload={
            "entry_id": point.entry_id,
            "tenant": point.tenant,
            "scope": point.scope,
            "intent": point.intent,
            "expires_at": point.expires_at,
            "tags": list(point.tags),
        },
    )


def _neighbour(hit: models.ScoredPoint) -> Neighbour:
    assert hit.payload is not None
    return Neighbour(hit.payload["entry_id"], max(-1.0, min(1.0, hit.score)))


def _is(field: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _after(now: float) -> models.FieldCondition:
    return models.FieldCondition(key="expires_at", range=models.Range(gt=now))
