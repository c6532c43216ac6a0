"""Exact and semantic response cache: look up, store, inspect, invalidate.

Knows no HTTP, no model of its own and no store's protocol. A part that is slow or down makes a
miss, never an error.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from semantic_layer.answer_comparison import AnswerComparison
from semantic_layer.beside import beside_loop
from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.canonical import exact_key
from semantic_layer.chats.rewriting import Rewriter
from semantic_layer.comparison.answer_equality import Equality
from semantic_layer.decision import Judge
from semantic_layer.entry import Entry
from semantic_layer.errors import StoreUnavailable
from semantic_layer.exact import ExactReader
from semantic_layer.guarded import GuardedParts, Observe, OnFailure, Stopwatch
from semantic_layer.intents.intent import DetectIntent, detect_intent
from semantic_layer.lookup import Lookup
from semantic_layer.models.embedding import Embedder
from semantic_layer.models.scorer import Scorer
from semantic_layer.models.verifier import Verifier
from semantic_layer.nearest import NearestSearch
from semantic_layer.outcome import Bypass, Hit, Inspection, Judgement, Miss, Outcome, Reason
from semantic_layer.policy import CachePolicy
from semantic_layer.reading import RequestReader
from semantic_layer.reembedding import Reembedder
from semantic_layer.rejections import Rejections
from semantic_layer.request import CacheControl, CacheQuery
from semantic_layer.restoration import Restorer
from semantic_layer.stores.response_store import Names, Page, ResponseStore, Room, Selector
from semantic_layer.stores.vector_index import VectorIndex
from semantic_layer.upkeep import Near, PartState, Upkeep
from semantic_layer.writer import EntryWriter


class SemanticCache:
    """Answers that may be served again, proven so; see `lookup`.

    Args:
        store: keeps the entries.
        index: finds them by likeness of text.
        embedder: None leaves exact repeats only.
        scorer: turns a comparison into the probability of the same answer.
        verifier: gives that probability better; None leaves it to the scorer.
        rewriter: puts last messages that need their history so that they do not.
        detect: names the intent of a text and, where there is one, its vector.
        clock: Unix seconds.
        observe: told the seconds of each stage (exact, embed, search, verify).
        on_failure: told the part's name (redis, qdrant, embedder) for each failed call.
        on_private: told what of a request or answer is private, once for each.
        on_removed: told why entries went (size, expired, asked), and how many.
    """

    def __init__(
        self,
        *,
        store: ResponseStore,
        index: VectorIndex,
        embedder: Embedder | None,
        policy: CachePolicy | None = None,
        scorer: Scorer | None = None,
        verifier: Verifier | None = None,
        rewriter: Rewriter | None = None,
        thresholds: Thresholds | None = None,
        detect: DetectIntent = detect_intent,
        clock: Callable[[], float] = time.time,
        observe: Observe | None = None,
        on_failure: OnFailure | None = None,
        on_private: Callable[[str], None] = lambda _: None,
        on_removed: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        self.policy = policy or CachePolicy()
        self.thresholds = thresholds or Thresholds()
        self.rejections = Rejections()
        knows_word = None if embedder is None else embedder.knows_word
        self._clock = clock
        self._observe = observe
        self._parts = GuardedParts(
            store, index, embedder, verifier, self.policy, on_failure, rewriter
        )
        scorer = scorer or Scorer.conservative()
        self._judge = Judge(scorer, knows_word, self._parts.verifier)
        self._answers = AnswerComparison(self._parts, scorer, knows_word)
        self._exact = ExactReader(self._parts)
        self._nearest = NearestSearch(self._parts, self.policy, self._judge, self.rejections)
        self._reader = RequestReader(self._parts, self.policy, detect)
        self._upkeep = Upkeep(self._parts, clock, on_removed)
        self._writer = EntryWriter(self._parts, self.policy, clock, self._upkeep, on_private)
        self.reembedding = Reembedder(self._parts, self._upkeep, clock)
        self.restoration = Restorer(self._parts, self.reembedding, clock)

    def retune(self, thresholds: Thresholds, ttl_by_intent_s: Mapping[str, float]) -> None:
        """Judge and keep by these from now on; what is stored stays as it is.

        A time to live named here comes before the policy's, and after the request's own.
        """
        self.thresholds = thresholds
        self._writer.ttl_by_intent_s = ttl_by_intent_s

    def adopt(self, policy: CachePolicy) -> None:
        """Follow another policy from now on; the parts' deadlines stay what they were."""
        self.policy = policy
        for follower in (self._nearest, self._reader, self._writer):
            follower.policy = policy

    async def lookup(self, query: CacheQuery, control: CacheControl) -> Outcome:
        """Find an answer that may be served, exact repeats first; never raises for a store."""
        refusal = self.policy.refusal(query, control)
        if refusal is not None:
            return Bypass((refusal,))
        key = await beside_loop(query.num_bytes, exact_key, query, control.context)
        look = Lookup(query, control, key, self._clock())
        found = await self._find(look, self._observe)
        if look.stale:
            await self._forget(look)
        if isinstance(found, Hit):
            return found
        if not look.is_cacheable:
            return Bypass(found.reasons, look.intent)
        return look.miss(found, may_store=not control.no_store)

    async def lookup_many(
        self, queries: Sequence[CacheQuery], control: CacheControl
    ) -> list[Hit | Miss] | Bypass:
        """Find exact repeats of many small requests of one tenant, few round trips for all.

        The misses can be stored one by one; none is ever found by likeness.
        """
        if control.no_cache and control.no_store:
            return Bypass((Reason("cache-control", "skip", "no-cache and no-store"),))
        watch = Stopwatch(self._observe)
        now = self._clock()
        looks = [Lookup(q, control, exact_key(q, control.context), now) for q in queries]
        entries: list[Entry | None] = [None] * len(looks)
        if not control.no_cache:
            entries = await self._exact.many(looks)
            watch.lap("exact")
        return [
            look.miss(Judgement(), may_store=not control.no_store)
            if entry is None or entry.is_stale(now)
            else look.hit("exact", entry, Judgement(intent=entry.intent))
            for look, entry in zip(looks, entries, strict=True)
        ]

    async def stored(self, query: CacheQuery, control: CacheControl, key: str) -> Entry | None:
        """Return the fresh answer to exactly this request; None also when the store is down.

        ``key`` is that of the request's `Miss`.
        """
        entry = await self._exact.one(Lookup(query, control, key, self._clock()))
        return None if entry is None or entry.is_stale(self._clock()) else entry

    async def is_withdrawn(
        self, query: CacheQuery, control: CacheControl, key: str, age_s: float
    ) -> bool:
        """Say whether this request's answers of ``age_s`` ago were withdrawn since.

        ``key`` is that of the request's `Miss`. False also when the store is down.
        """
        names = Names(query.tenant, query.namespace, query.model, key, control.tags)
        try:
            return await self._parts.is_withdrawn(names, age_s)
        except StoreUnavailable:
            return False

    async def inspect(self, query: CacheQuery, control: CacheControl) -> Inspection:
        """Tell what `lookup` would do, with all candidates; counts, writes and removes nothing.

        No served model is asked: what only a judge or a rewriter could tell stays open.
        """
        refusal = self.policy.refusal(query, control)
        if refusal is not None:
            return Inspection("bypass", judgement=Judgement(reasons=(refusal,)))
        key = exact_key(query, control.context)
        look = Lookup(query, control, key, self._clock(), is_dry=True)
        found = await self._find(look, None)
        if isinstance(found, Hit):
            return Inspection(found.layer, found.entry, found.judgement)
        return Inspection("miss" if look.is_cacheable else "bypass", judgement=found)

    async def store(
        self,
        query: CacheQuery,
        control: CacheControl,
        outcome: Miss,
        answer: bytes,
        *,
        answer_text: str,
        exact_only: bool = False,
    ) -> str | None:
        """Keep the answer of a missed request; return its id, None when it was not kept.

        An ``exact_only`` answer is never found by likeness. Never raises for a store.
        """
        if not outcome.may_store:
            return None
        try:
            return await self._writer.write(
                query, control, outcome, answer, answer_text=answer_text, exact_only=exact_only
            )
        except StoreUnavailable:
            return None

    async def insert(
        self,
        query: CacheQuery,
        control: CacheControl,
        answer: bytes,
        *,
        answer_text: str,
        exact_only: bool = False,
    ) -> str | None:
        """Keep an answer from elsewhere, as if the request had missed; return its id.

        None when the request is one that is never cached.

        Raises:
            StoreUnavailable: a part is slow or down.
        """
        if self.policy.refusal(query, replace(control, no_cache=False)) is not None:
            return None
        look = Lookup(query, control, exact_key(query, control.context), self._clock())
        await self._reader.read(look, self.thresholds, Stopwatch(None))
        if not look.is_cacheable:
            return None
        if look.scope is not None and look.embedding is None:
            raise StoreUnavailable(look.reasons[-1].detail)
        miss = look.miss(look.judgement, may_store=True)
        return await self._writer.write(
            query, control, miss, answer, answer_text=answer_text, exact_only=exact_only
        )

    async def entry(self, tenant: str, entry_id: str) -> Entry | None:
        """Return one entry.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        return await self._parts.get(tenant, entry_id)

    async def same_answer(self, one: str, other: str) -> Equality:
        """Tell whether two answers say the same; undecided where a part is down."""
        return await self._answers.compare(one, other)

    @property
    def scorer(self) -> str:
        """The fingerprint of what gives scores: others' scores mean something else."""
        return self._judge.fingerprint

    async def browse(self, selector: Selector, cursor: str | None, limit: int) -> Page:
        """Return a page of entries, newest first.

        Raises:
            StoreUnavailable: the store is slow or down.
            ValueError: the cursor is not one of ours.
        """
        return await self._upkeep.browse(selector, cursor, limit)

    async def invalidate(self, selector: Selector, *, dry_run: bool = False) -> int:
        """Remove the selected entries from both stores, or only count them.

        Answers that are on their way to them are not kept, here and in other gateways.

        Raises:
            StoreUnavailable: a store is slow or down; some entries may be gone already.
            ValueError: the selector selects nothing.
        """
        return await self._upkeep.invalidate(selector, dry_run=dry_run)

    async def near(
        self, text: str, radius: float, selector: Selector, *, dry_run: bool
    ) -> list[Near]:
        """Remove the entries that ask nearly this, or only list them; nearest first.

        ``radius`` (0..1) is one less the least similarity; the selector narrows them further.

        Raises:
            StoreUnavailable: a part is slow or down.
            TextTooLong: the text is longer than the embedder reads.
        """
        vector = await self._parts.embed(text)
        return await self._upkeep.near(vector, 1 - radius, selector, dry_run=dry_run)

    async def sweep(self) -> int:
        """Drop what has expired from the indexes; return how many. Never raises for a store."""
        return await self._upkeep.sweep()

    async def counts(self) -> dict[str, int]:
        """Return the number of entries by store; a store that is down is absent."""
        return await self._upkeep.counts()

    async def room(self) -> Room | None:
        """Tell how full the store's memory is; None where it is down, or nobody counts."""
        return await self._upkeep.room()

    async def health(self) -> dict[str, PartState]:
        """Return the state of each part, asked now."""
        return await self._upkeep.health()

    async def reembed(self) -> None:
        """Embed what is stored and has no vector, as after a change of embedder; ends when done."""
        if self._parts.embedder is not None:
            await self.reembedding.run()

    @property
    def open_breakers(self) -> dict[str, bool]:
        """Whether each part's breaker is open."""
        return {part: breaker.is_open for part, breaker in self._parts.breakers.items()}

    async def close(self) -> None:
        """Close the models and both stores."""
        await self._parts.close()

    async def _find(self, look: Lookup, observe: Observe | None) -> Hit | Judgement:
        watch, control = Stopwatch(observe), look.control
        if not control.no_cache:
            entry = await self._exact.one(look)
            watch.lap("exact")
            if entry is not None:
                look.know(control.intent or entry.intent, self.thresholds)
                return look.hit("exact", entry, look.judgement)
        await self._reader.read(look, self.thresholds, watch)
        if look.scope is None or look.embedding is None or control.no_cache:
            return look.judgement
        decision = await self._nearest.of(look, self.thresholds, watch)
        if decision is None:
            return look.judgement
        judgement = look.completed(decision.judgement)
        if decision.entry is None:
            return judgement
        is_repeat = decision.entry.entry_id == look.key  # written since the exact read
        return look.hit("exact" if is_repeat else "semantic", decision.entry, judgement)

    async def _forget(self, look: Lookup) -> None:
        try:
            await self._parts.drop_points(look.query.tenant, look.stale)
        except StoreUnavailable:
            return
