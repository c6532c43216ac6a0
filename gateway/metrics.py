"""Prometheus metrics, and the only file that names its client library.

Names are fixed by the product's contract. Label values are bounded: models that nobody serves, or
that never answered, and intents nobody knows do not become series.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics import MetricWrapperBase

from gateway.backends.upstream import ReplicaView
from gateway.engine_metrics import EngineCollector
from gateway.ledger import SPENT
from gateway.model_names import OTHER, ModelNames
from gateway.record import RequestRecord
from gateway.stats import MAX_TENANTS, counted_as, tokens_saved, tokens_used
from prefix_layer import EngineStats
from semantic_layer import Label, Progress

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REJECTED = "rejected"
NO_INTENT = "none"
MAX_INTENTS = 64
REPLICA = "upstream replica"

M = TypeVar("M", bound=MetricWrapperBase)

_REQUEST_BUCKETS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
)  # fmt: skip
_LOOKUP_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
)  # fmt: skip


class Metrics:
    """All series of one gateway, in a registry of its own."""

    def __init__(self, names: ModelNames | None = None) -> None:
        self._registry = CollectorRegistry()
        self._names = names or ModelNames()
        self._intents: set[str] = set()
        self._tenants: set[str] = set()
        self._counters: dict[str, _Children[Counter]] = {}
        self._engine = EngineCollector()
        self._registry.register(self._engine)
        ProcessCollector(registry=self._registry)
        self._requests = self._counter(
            "strata_requests_total", "Requests by what they came to", "route outcome model intent"
        )
        self._tenant_requests = self._counter(
            "strata_tenant_requests_total", "Requests of a tenant", "tenant outcome"
        )
        self._tenant_tokens = self._counter(
            "strata_tenant_tokens_total", "Tokens a model processed, or was spared", "tenant kind"
        )
        self._request_seconds = self._histogram(
            "strata_request_seconds", "Whole time of a request", "route outcome", _REQUEST_BUCKETS
        )
        self._ttft_seconds = self._histogram(
            "strata_ttft_seconds", "Time to the first content", "outcome", _REQUEST_BUCKETS
        )
        self._lookup_seconds = self._histogram(
            "strata_lookup_seconds", "Stages of a cache look-up", "stage", _LOOKUP_BUCKETS
        )
        self._tokens_saved = self._counter(
            "strata_tokens_saved_total", "Tokens no model had to process", "layer"
        )
        self._store_failures = self._counter(
            "strata_store_failures_total", "Calls of a cache part that failed", "store"
        )
        self._rewrites = self._counter(
            "strata_rewrites_total", "Last messages put by a rewriter, and whether used", "outcome"
        )
        self._private = self._counter(
            "strata_private_answers_total", "Answers held back by what they hold", "kind"
        )
        self._removed = self._counter(
            "strata_entries_removed_total", "Entries that went, by why", "reason"
        )
        self._refreshes = self._counter(
            "strata_refreshes_total", "Stale answers made anew beside the traffic", "outcome"
        )
        self._reembedded = self._gauge(
            "strata_reembedded_entries", "Stored entries embedded anew since the start", ""
        )
        self._reembedding = self._gauge(
            "strata_reembedding", "1 while stored entries are looked through for vectors", ""
        )
        self._dropped = self._counter(
            "strata_write_back_dropped_total", "Answers not stored: the queue was full", ""
        )
        self._upstream_requests = self._counter(
            "strata_upstream_requests_total", "Answers of upstreams by status", "upstream status"
        )
        self._fallbacks = self._counter(
            "strata_upstream_fallbacks_total", "Answers of models that stood in", "model used"
        )
        self._replica_up = self._gauge(
            "strata_upstream_replica_up", "1 while a replica may be sent requests", REPLICA
        )
        self._replica_in_flight = self._gauge(
            "strata_upstream_in_flight", "Requests a replica is answering", REPLICA
        )
        self._money_spent = self._counter(
            "strata_money_spent_total", "Paid for tokens, by the prices set", "currency"
        )
        self._money_saved = self._counter(
            "strata_money_saved_total", "Not paid, by the layer that spared it", "currency layer"
        )
        self._entries = self._gauge("strata_entries", "Entries kept", "store")
        self._breaker_open = self._gauge("strata_breaker_open", "1 while a part is avoided", "part")
        self._labelled = self._counter(
            "strata_hits_labelled_total", "Verdicts on served hits", "intent verdict source"
        )
        self._compared = self._counter(
            "strata_answers_compared_total", "Answers compared to learn from", "source verdict"
        )
        self._wrong_hits = self._gauge(
            "strata_wrong_hit_ratio", "Wrong share of labelled hits, 95% bounds", "intent bound"
        )
        self._threshold = self._gauge("strata_threshold", "Score a hit must reach", "intent")

    def record(self, record: RequestRecord) -> None:
        """Count one request that reached the pipeline, once, when it has ended."""
        outcome = counted_as(record)
        model = self._names.of(record.model, answered=record.is_answered)
        self._requests(record.route, outcome, model, self._intent(record.intent)).inc()
        tenant = _bounded(self._tenants, record.tenant, MAX_TENANTS)
        self._tenant_requests(tenant, outcome).inc()
        for kind, count in tokens_used(record).items():
            self._tenant_tokens(tenant, kind).inc(count)
        self._request_seconds(record.route, outcome).observe(record.seconds)
        if record.ttft_s is not None:
            self._ttft_seconds(outcome).observe(record.ttft_s)
        for layer, count in tokens_saved(record).items():
            self._tokens_saved(layer).inc(count)
        for reason in record.judgement.reasons:
            if reason.check == "rewrite":
                self._rewrites("used" if reason.verdict == "pass" else "unused").inc()

    def reject(self, route: str) -> None:
        """Count one request that was refused before the pipeline saw it."""
        self._requests(route, REJECTED, OTHER, NO_INTENT).inc()

    def observe_lookup(self, stage: str, seconds: float) -> None:
        """Clock one stage of a look-up: exact, rewrite, embed, search or verify."""
        self._lookup_seconds(stage).observe(seconds)

    def count_store_failure(self, store: str) -> None:
        """Count one failed call of a cache part."""
        self._store_failures(store).inc()

    def set_reembedding(self, progress: Progress) -> None:
        """Show how far stored entries have been embedded anew."""
        self._reembedded().set(progress.num_embedded)
        self._reembedding().set(not progress.is_done)

    def count_private(self, kind: str) -> None:
        """Count one answer that was not kept as it is; ``kind`` is what it holds."""
        self._private(kind).inc()

    def count_removed(self, reason: str, number: int) -> None:
        """Count entries that went: expired, asked or size."""
        self._removed(reason).inc(number)

    def count_refresh(self, outcome: str) -> None:
        """Count one stale answer that was made anew, or was not."""
        self._refreshes(outcome).inc()

    def count_dropped(self) -> None:
        """Count one answer that was not stored because the queue was full."""
        self._dropped().inc()

    def count_upstream(self, upstream: str, status: str) -> None:
        """Count one answer of an upstream; ``status`` is its code or how it failed."""
        self._upstream_requests(upstream, status).inc()

    def count_fallback(self, asked: str, used: str) -> None:
        """Count one answer of a model in place of another."""
        asked, used = self._names.of(asked, answered=False), self._names.of(used, answered=True)
        self._fallbacks(asked, used).inc()

    def count_money(self, kind: str, currency: str, amount: float) -> None:
        """Count money; the kind is ``spent`` or the layer that saved it."""
        if kind == SPENT:
            self._money_spent(currency).inc(amount)
        else:
            self._money_saved(currency, kind).inc(amount)

    def set_replica(self, upstream: str, view: ReplicaView) -> None:
        """Show one replica of an upstream."""
        self._replica_up(upstream, view.url).set(view.state == "ready")
        self._replica_in_flight(upstream, view.url).set(view.in_flight)

    def set_breaker(self, part: str, *, is_open: bool) -> None:
        """Show whether a part is avoided."""
        self._breaker_open(part).set(is_open)

    def set_entries(self, counts: Mapping[str, int]) -> None:
        """Show the entries of each store."""
        for store, count in counts.items():
            self._entries(store).set(count)

    def count_label(self, label: Label) -> None:
        """Count one verdict on a pair, if its answer was served."""
        if label.served:
            self.count_verdict(label.intent, right=label.right, source=label.source)

    def count_verdict(self, intent: str | None, *, right: bool, source: str) -> None:
        """Count one verdict on a served hit."""
        self._labelled(self._intent(intent or None), "right" if right else "wrong", source).inc()

    def count_compared(self, source: str, verdict: str) -> None:
        """Count one comparison of answers: right, wrong, undecided, failed or dropped."""
        self._compared(source, verdict).inc()

    def set_wrong_hits(self, intent: str, bounds: Mapping[str, float]) -> None:
        """Show the wrong share of an intent's labelled hits: low, point and high."""
        for bound, share in bounds.items():
            self._wrong_hits(self._intent(intent), bound).set(share)

    def set_thresholds(self, thresholds: Mapping[str, float]) -> None:
        """Show each intent's threshold."""
        for intent, threshold in thresholds.items():
            self._threshold(self._intent(intent)).set(threshold)

    def set_engine(self, stats: EngineStats | None) -> None:
        """Show the engine's last reading; None when there is no engine to read."""
        self._engine.stats = stats

    def totals(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Return every counter by name and label values, in the order of its labels.

        Names are without ``strata_`` and ``_total``.
        """
        return {
            name.removeprefix("strata_").removesuffix("_total"): counter.values()
            for name, counter in self._counters.items()
        }

    def render(self) -> bytes:
        """Return the exposition text, of type `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def _intent(self, intent: str | None) -> str:
        if intent is None:
            return NO_INTENT
        return _bounded(self._intents, intent, MAX_INTENTS)

    def _counter(self, name: str, text: str, labels: str) -> "_Children[Counter]":
        children = _Children(Counter(name, text, labels.split(), registry=self._registry))
        self._counters[name] = children
        return children

    def _gauge(self, name: str, text: str, labels: str) -> "_Children[Gauge]":
        return _Children(Gauge(name, text, labels.split(), registry=self._registry))

    def _histogram(
        self, name: str, text: str, labels: str, buckets: tuple[float, ...]
    ) -> "_Children[Histogram]":
        return _Children(
            Histogram(name, text, labels.split(), registry=self._registry, buckets=buckets)
        )


def _bounded(known: set[str], name: str, limit: int) -> str:
    """Return the name as a label value; past the limit unknown ones are ``other``."""
    if len(known) < limit:
        known.add(name)
    return name if name in known else OTHER


class _Children(Generic[M]):
    """A metric whose children are kept by label values: `labels` costs more than the counting."""

    def __init__(self, metric: M) -> None:
        self._metric = metric
        self._children: dict[tuple[str, ...], M] = {}

    def __call__(self, *labels: str) -> M:
        child = self._children.get(labels)
        if child is None:
            child = self._metric.labels(*labels) if labels else self._metric
            self._children[labels] = child
        return child

    def values(self) -> dict[tuple[str, ...], float]:
        """Return the value of every child; a counter's total."""
        return {
            tuple(sample.labels.values()): sample.value
            for family in self._metric.collect()
            for sample in family.samples
            if not sample.name.endswith("_created")
        }
