"""The cache's parts behind their breakers: slow or broken, they raise one error only.

Every call is timed by stage. Knows nothing of keys, texts and decisions.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from semantic_layer.breaker import Breaker, BreakerSettings
from semantic_layer.embedding import Embedder, Vectors
from semantic_layer.entry import Entry
from semantic_layer.errors import EmbedderFailed, StoreUnavailable, VerifierFailed
from semantic_layer.policy import CachePolicy
from semantic_layer.response_store import ResponseStore
from semantic_layer.vector_index import Neighbour, Point, Vector, VectorIndex
from semantic_layer.verifier import Pair, Verifier

T = TypeVar("T")
Observe = Callable[[str, float], None]
OnFailure = Callable[[str], None]


class GuardedParts:
    """Store, index and embedder, each with a deadline and a breaker.

    Raises:
        StoreUnavailable: from any call, when the part is slow, down or its breaker open.
    """

    def __init__(
        self,
        store: ResponseStore,
        index: VectorIndex,
        embedder: Embedder | None,
        verifier: Verifier | None,
        policy: CachePolicy,
        on_failure: OnFailure | None,
    ) -> None:
        def breaker(part: str, deadline_s: float) -> Breaker:
            settings = BreakerSettings(
                failures=policy.failures, deadline_s=deadline_s, backoff_s=policy.backoff_s
            )
            return Breaker(part, settings, on_failure=on_failure)

        self.store = store
        self.index = index
        self.embedder = embedder
        self.breakers = {
            "redis": breaker("redis", policy.store_deadline_s),
            "qdrant": breaker("qdrant", policy.index_deadline_s),
            "embedder": breaker("embedder", policy.embed_deadline_s),
            "verifier": breaker("verifier", policy.verify_deadline_s),
        }
        self.verifier = verifier and GuardedVerifier(verifier, self.breakers["verifier"])

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Read one entry."""
        return await self._redis(lambda: self.store.get(tenant, entry_id))

    async def get_many(self, tenant: str, entry_ids: Sequence[str]) -> list[Entry | None]:
        """Read entries in one round trip."""
        return await self._redis(lambda: self.store.get_many(tenant, entry_ids))

    async def put(self, entry: Entry) -> None:
        """Keep an entry."""
        await self._redis(lambda: self.store.put(entry))

    async def search(
        self, vector: Vector, *, tenant: str, scope: str, now: float, limit: int
    ) -> list[Neighbour]:
        """Find the nearest live points of a scope."""
        return await self._qdrant(
            lambda: self.index.search(vector, tenant=tenant, scope=scope, now=now, limit=limit)
        )

    async def upsert(self, point: Point) -> None:
        """Add a point."""
        await self._qdrant(lambda: self.index.upsert([point]))

    async def missing(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Return those of the ids that have no point."""
        return await self._qdrant(lambda: self.index.missing(tenant, entry_ids))

    async def drop_points(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Forget points."""
        await self._qdrant(lambda: self.index.delete(tenant, entry_ids))

    async def embed(self, text: str) -> Vector:
        """Embed one text to a unit row ``(dim,)``.

        Raises:
            TextTooLong: the text does not fit the window.
        """
        vector: Vector = (await self.embed_all([text]))[0]
        return vector

    async def embed_all(self, texts: Sequence[str]) -> Vectors:
        """Embed texts to unit rows ``(len(texts), dim)``; see `embed`."""
        embedder = self.embedder
        if embedder is None:
            raise StoreUnavailable("no embedder")

        async def embed() -> Vectors:
            try:
                return await embedder.embed(texts)
            except EmbedderFailed as error:
                raise StoreUnavailable(str(error)) from error

        return await self.breakers["embedder"].call(embed)

    async def _redis(self, make: Callable[[], Awaitable[T]]) -> T:
        return await self.breakers["redis"].call(make)

    async def _qdrant(self, make: Callable[[], Awaitable[T]]) -> T:
        return await self.breakers["qdrant"].call(make)


class GuardedVerifier:
    """A verifier behind its breaker; see `semantic_layer.decision.Verify`."""

    def __init__(self, verifier: Verifier, breaker: Breaker) -> None:
        self.fingerprint = verifier.fingerprint
        self.fits = verifier.fits
        self.close = verifier.close
        self._verifier = verifier
        self._breaker = breaker

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of the same answer per pair.

        Raises:
            StoreUnavailable: it is slow, broken, or its breaker is open.
        """

        async def ask() -> list[float]:
            try:
                return await self._verifier.scores(pairs)
            except VerifierFailed as error:
                raise StoreUnavailable(str(error)) from error

        return await self._breaker.call(ask)


class Stopwatch:
    """Times the stages of one look-up and reports them, also of stages that fail."""

    def __init__(self, observe: Observe | None) -> None:
        self._observe = observe
        self._started = time.perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage; the next one starts now."""
        now = time.perf_counter()
        if self._observe is not None:
            self._observe(stage, now - self._started)
        self._started = now
