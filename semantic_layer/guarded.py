"""The cache's parts behind their breakers: slow or broken, they raise one error only.

Every call is timed by stage. Knows nothing of keys, texts and decisions.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from semantic_layer.breaker import Breaker, BreakerSettings
from semantic_layer.chats.chat import Chat
from semantic_layer.chats.rewriting import Rewriter
from semantic_layer.entry import Entry
from semantic_layer.errors import (
    EmbedderFailed,
    RewriterFailed,
    StoreUnavailable,
    VerifierFailed,
)
from semantic_layer.gathered_reads import GatheredReads
from semantic_layer.models.embedding import Embedder, Vectors
from semantic_layer.models.verifier import Pair, Verifier
from semantic_layer.policy import CachePolicy
from semantic_layer.stores.response_store import Named, ResponseStore
from semantic_layer.stores.vector_index import Neighbour, Point, Vector, VectorIndex

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
        rewriter: Rewriter | None = None,
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
        if rewriter is not None:
            self.breakers["rewriter"] = breaker("rewriter", policy.rewrite_deadline_s)
        self.rewriter = rewriter
        self.verifier = verifier and GuardedVerifier(verifier, self.breakers["verifier"])
        self._reads = GatheredReads(self._read_together)

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Read one entry, in one round trip with those that others read now."""
        return await self._reads.get(tenant, entry_id)

    async def get_many(self, tenant: str, entry_ids: Sequence[str]) -> list[Entry | None]:
        """Read entries in one round trip."""
        return await self._redis(lambda: self.store.get_many(tenant, entry_ids))

    async def put(self, entry: Entry, age_s: float = 0.0) -> bool:
        """Keep an entry, unless it was withdrawn while on its way; say whether it was kept."""
        return await self._redis(lambda: self.store.put(entry, age_s))

    async def is_withdrawn(self, answer: Named, age_s: float) -> bool:
        """Say whether an answer was withdrawn within the last ``age_s``."""
        return await self._redis(lambda: self.store.is_withdrawn(answer, age_s))

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

    async def retire_others(self, now: float) -> int:
        """Remove the collections of other embedders that nobody needs; return how many.

        No look-up waits for it, so it has no deadline and no word in the breaker.
        """
        return await self.index.retire_others(now)

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

    async def rewrite(self, chat: Chat) -> str:
        """Put a chat's last message in words that need no history."""
        rewriter = self.rewriter
        if rewriter is None:
            raise StoreUnavailable("no rewriter")

        async def rewrite() -> str:
            try:
                return await rewriter.rewrite(chat)
            except RewriterFailed as error:
                raise StoreUnavailable(str(error)) from error

        return await self.breakers["rewriter"].call(rewrite)

    async def close(self) -> None:
        """Close the models and both stores."""
        if self.verifier is not None:
            await self.verifier.close()
        if self.embedder is not None:
            await self.embedder.close()
        await self.index.close()
        await self.store.close()

    async def _read_together(
        self, tenant: str, entry_ids: Sequence[str], num_callers: int
    ) -> Sequence[Entry | None]:
        async def read() -> Sequence[Entry | None]:
            if len(entry_ids) == 1:
                return [await self.store.get(tenant, entry_ids[0])]
            return await self.store.get_many(tenant, entry_ids)

        return await self.breakers["redis"].call(read, num_callers=num_callers)

    async def _redis(self, make: Callable[[], Awaitable[T]]) -> T:
        return await self.breakers["redis"].call(make)

    async def _qdrant(self, make: Callable[[], Awaitable[T]]) -> T:
        return await self.breakers["qdrant"].call(make)


class GuardedVerifier:
    """A verifier behind its breaker; see `semantic_layer.verifying.Verify`."""

    def __init__(self, verifier: Verifier, breaker: Breaker) -> None:
        self.fingerprint = verifier.fingerprint
        self.asks_model = verifier.asks_model
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
