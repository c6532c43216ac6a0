"""All that is learnt while one gateway runs, kept beside the response path."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from gateway.auth import PUBLIC
from gateway.backends.routing import Backends
from gateway.evidence.asking import ask_again
from gateway.evidence.comparison import NO_JUDGE, Comparison
from gateway.evidence.experiments import EXPERIMENTS, Experiments, trials
from gateway.evidence.feedback import Feedback
from gateway.evidence.gatherer import Gatherer
from gateway.evidence.intents import INTENTS, IntentDesk
from gateway.evidence.journal_copy import JournalCopy
from gateway.evidence.labels import LabelDesk
from gateway.evidence.playback import Playback, play_back
from gateway.evidence.recorded import RecordedRequest
from gateway.evidence.request_log import RequestLog
from gateway.evidence.review import ReviewItem, review_queue
from gateway.evidence.sampling import Sampling
from gateway.evidence.trainer import Trainer
from gateway.evidence.tuner import Tuner
from gateway.evidence.unread import count_unread
from gateway.metrics import Metrics
from gateway.record import RequestRecord
from semantic_layer import (
    LABELS,
    REJECTIONS,
    Follower,
    IntentPolicies,
    Journal,
    PooledThresholds,
    SemanticCache,
    Start,
    StoreUnavailable,
)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EvidencePolicy:
    """How much is learnt and kept.

    ``budget`` is the wrong share (0..1) that intents without their own are held to, ``start`` what
    they are served by until labels prove a threshold. Shares (0..1)
    are of semantic hits answered afresh, and of near-misses compared; each source gives
    ``most_per_minute`` at most. ``judge`` is the model asked where words do not decide;
    ``intents`` are the wishes for intents that hold where operators set none.
    """

    budget: float = 0.01
    start: Start = "fitted"
    shadow_share: float = 0.0
    gray_share: float = 1.0
    most_per_minute: int = 30
    judge: str = NO_JUDGE
    requests_kept: int = 10_000
    texts: bool = True
    intents: IntentPolicies = field(default_factory=IntentPolicies)


class Evidence:
    """Policies, recorded requests, labels and what gathers them, over journals all gateways share.

    ``tenants`` tells the names of the tenants that have keys.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        cache: SemanticCache,
        backends: Backends,
        metrics: Metrics,
        policy: EvidencePolicy,
        tenants: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._journal = journal
        pooled = PooledThresholds.matching(cache.scorer)
        self.tuner = Tuner(policy.budget, cache.retune, policy.intents, pooled, policy.start)
        self.intents = IntentDesk(journal, self.tuner.use_policies)
        self.requests = RequestLog(
            journal,
            most=policy.requests_kept,
            texts=policy.texts,
            scorer=lambda: cache.scorer,
            on_failure=lambda: metrics.count_store_failure("requests"),
        )
        self.copy = JournalCopy(journal, self.requests)
        self.labels = LabelDesk(journal, cache.rejections, metrics.count_label)
        self._tenants = tenants
        self.feedback = Feedback(
            cache,
            self.requests,
            self.labels,
            find=self.find_request,
            on_verdict=metrics.count_verdict,
        )
        self.gatherer = Gatherer(
            cache=cache,
            labels=self.labels,
            comparison=Comparison(cache, backends, policy.judge),
            generate=partial(ask_again, backends),
            shadow=Sampling(policy.shadow_share, policy.most_per_minute),
            gray=Sampling(policy.gray_share, policy.most_per_minute),
            texts=policy.texts,
            on_compared=metrics.count_compared,
        )
        self.experiments = Experiments(
            journal, lambda running: self.tuner.use_trials(trials(running))
        )
        self.trainer = Trainer(self.labels.book, self.tuner, lambda: cache.scorer)
        self._cache, self._backends = cache, backends
        self._follower = Follower(
            journal,
            {
                INTENTS: self.intents,
                EXPERIMENTS: self.experiments,
                LABELS: self.labels.book,
                REJECTIONS: cache.rejections,
            },
        )

    def adopt(self, policy: EvidencePolicy) -> None:
        """Learn and keep by another policy from now on."""
        self.tuner.use_settings(policy.budget, policy.intents, policy.start)
        self.requests.keep(policy.requests_kept, texts=policy.texts)
        self.gatherer.keep_texts(texts=policy.texts)
        self.gatherer.adopt(
            Comparison(self._cache, self._backends, policy.judge),
            Sampling(policy.shadow_share, policy.most_per_minute),
            Sampling(policy.gray_share, policy.most_per_minute),
        )

    async def find_request(self, request_id: str) -> RecordedRequest | None:
        """Return the latest request of this id, whoever made it.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        names = dict.fromkeys([PUBLIC, *self._tenants()])
        return await self.requests.get(request_id, list(names))

    def record(self, record: RequestRecord) -> None:
        """Take note of a request that ended."""
        self.requests.record(record)
        self.feedback.record(record)
        self.experiments.record(record)

    async def start(self) -> None:
        """Read what is known before the first request; a store that is down is asked again."""
        with suppress(StoreUnavailable):
            await self._follower.catch_up()
            if unread := await self.unread():
                rows, told = sum(unread.values()), "kept, unreadable with this cache.encryption_key"
                _log.warning("rows_unreadable", rows=rows, journals=unread, detail=told)
        await self.trainer.learn()

    async def unread(self) -> dict[str, int]:
        """Count the rows, by kind of journal, that the encryption key in force cannot read.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        return await count_unread(self._journal)

    async def catch_up(self) -> None:
        """Learn now of what was written to the journals.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        await self._follower.catch_up()

    async def run(self) -> None:
        """Keep up with the other gateways, record and gather, for ever."""
        async with asyncio.TaskGroup() as group:
            for work in (
                self._follower.follow,
                self.requests.run,
                self.gatherer.run,
                self.trainer.run,
                self.experiments.run,
            ):
                group.create_task(work())

    async def review(self, intent: str | None, limit: int) -> list[ReviewItem]:
        """Return the unlabelled pairs whose verdicts would tell most.

        Raises:
            StoreUnavailable: a store is slow or down.
        """
        label_of = self.labels.book.of_request
        return await review_queue(self.requests, self._cache, label_of, intent=intent, limit=limit)

    async def play_back(self, intent: str, threshold: float) -> Playback:
        """Tell what another threshold would have changed on recorded traffic.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        return await play_back(self.requests, self.labels.book.of_request, intent, threshold)

    async def close(self) -> None:
        """Write what waits and close the journals."""
        await self.requests.flush()
        await self._journal.close()
