"""The scores that this gateway's settings give pairs of texts, without a gateway running."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from gateway.backends.routing import Backends
from gateway.errors import StrataError
from gateway.local_models import embedding_model_of
from gateway.settings import Settings
from gateway.verifiers import JUDGE, open_verifier
from semantic_layer import (
    CacheControl,
    CachePolicy,
    CacheQuery,
    MemoryResponseStore,
    MemoryVectorIndex,
    Scorer,
    SemanticCache,
    Thresholds,
    Verifier,
)

_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class PairScore:
    """What a pair was given: 0 where a guard or the similarity forbids a hit; 1 is one text."""

    score: float
    intent: str


class PairScorer:
    """Judges a text against a stored one as the cache does."""

    def __init__(self, cache: SemanticCache) -> None:
        self._cache = cache
        self._num_pairs = 0

    @property
    def fingerprint(self) -> str:
        """What changes whenever scores would."""
        return self._cache.scorer

    async def score(self, stored: str, asked: str, intent: str | None = None) -> PairScore:
        """Return the score that the stored text's answer has for the asked one."""
        self._num_pairs += 1
        control = CacheControl(intent=intent)
        entry = await self._cache.insert(self._query(stored), control, b"-", answer_text="")
        found = await self._cache.inspect(self._query(asked), control)
        judgement = found.judgement
        scores = [one.score for one in judgement.candidates if one.entry_id == entry]
        is_equal = found.outcome == "exact"
        return PairScore(1.0 if is_equal else max(scores, default=0.0), judgement.intent or "")

    def _query(self, text: str) -> CacheQuery:
        request = {"messages": [{"role": "user", "content": text}]}
        return CacheQuery("-", "-", "-", request, namespace=str(self._num_pairs))


@contextlib.asynccontextmanager
async def open_pair_scorer(settings: Settings) -> AsyncIterator[PairScorer]:
    """Open the embedder and all that decides; nothing is kept.

    Raises:
        StrataError, SemanticLayerError: a part cannot be opened; the message is one line.
    """
    model = embedding_model_of(settings)
    if model is None:
        raise StrataError("pairs are scored by an embedder of this machine, not an upstream's")
    async with AsyncExitStack() as stack:
        stack.push_async_callback(model.close)
        embedder = await model.open()
        cache = SemanticCache(
            store=MemoryResponseStore(),
            index=MemoryVectorIndex(embedder.dim),
            embedder=embedder,
            policy=CachePolicy(
                embed_deadline_s=_DEADLINE_S,
                index_deadline_s=_DEADLINE_S,
                verify_deadline_s=_DEADLINE_S,
            ),
            scorer=await Scorer.matching(embedder),
            verifier=await _verifier(settings),
            thresholds=Thresholds(priors={}, default=1.0),
        )
        stack.push_async_callback(cache.close)
        yield PairScorer(cache)


async def _verifier(settings: Settings) -> Verifier | None:
    if settings.semantic.verifier.startswith(JUDGE):
        raise StrataError("pairs are scored by a verifier of this machine, not by a judge")
    return await open_verifier(settings, Backends([]))
