"""Traffic since the start, for `GET /admin/stats`: counts, rates, quantiles. Knows no HTTP."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from gateway.latency import LatencyHistogram
from gateway.model_names import OTHER, ModelNames
from gateway.record import HITS, RequestRecord

MAX_TENANTS = 256


def counted_as(record: RequestRecord) -> str:
    """Return the one outcome a request counts as: the cache's, unless it did not end well."""
    return record.outcome if record.end == "ok" else record.end


def tokens_saved(record: RequestRecord) -> dict[str, int]:
    """Return the tokens each layer spared a model: whole answers, or the prompt's cached part."""
    usage = record.usage
    if usage is None:
        return {}
    whole = usage.prompt_tokens + usage.completion_tokens
    if record.outcome in HITS:
        return {record.outcome: whole}
    if record.coalesced:
        return {"flight": whole}
    return {"prefix": usage.cached_tokens} if usage.cached_tokens else {}


def tokens_used(record: RequestRecord) -> dict[str, int]:
    """Return the tokens a model processed for a request, and those it was spared."""
    usage, saved = record.usage, sum(tokens_saved(record).values())
    if usage is None:
        return {}
    if record.outcome in HITS or record.coalesced:
        return {"saved": saved}
    used = {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens, "saved": saved}
    return {kind: count for kind, count in used.items() if count}


class TrafficStats:
    """Collects the records of one process; memory is bounded whatever the traffic is."""

    def __init__(self, names: ModelNames | None = None) -> None:
        self._names = names or ModelNames()
        self._outcomes: Counter[str] = Counter()
        self._coalesced = 0
        self._rejected = 0
        self._by_intent: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._by_model: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._by_tenant: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._tenant_tokens: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: defaultdict[str, LatencyHistogram] = defaultdict(LatencyHistogram)
        self._ttft: defaultdict[str, LatencyHistogram] = defaultdict(LatencyHistogram)
        self._prefix_ttft: defaultdict[str, LatencyHistogram] = defaultdict(LatencyHistogram)
        self._tokens_saved: Counter[str] = Counter()

    def record(self, record: RequestRecord) -> None:
        """Count one request that reached the pipeline."""
        outcome = counted_as(record)
        tenant = self._tenant(record.tenant)
        self._by_tenant[tenant][outcome] += 1
        self._tenant_tokens[tenant].update(tokens_used(record))
        if outcome == "rejected":
            self.reject()
            return
        self._outcomes[outcome] += 1
        self._coalesced += record.coalesced
        self._by_intent[record.intent or "none"][outcome] += 1
        model = self._names.of(record.model, answered=record.is_answered)
        self._by_model[model][outcome] += 1
        if not record.is_unanswered:
            self._seconds[outcome].add(record.seconds)
        if record.ttft_s is not None:
            self._ttft[outcome].add(record.ttft_s)
            self._record_prefix(record, record.ttft_s)
        for layer, count in tokens_saved(record).items():
            self._tokens_saved[layer] += count

    def reject(self) -> None:
        """Count one request that was refused before the pipeline saw it."""
        self._rejected += 1

    def snapshot(self) -> dict[str, Any]:
        """Return everything as plain values; rates are shares of the requests counted beside."""
        return {
            **_shares(self._outcomes),
            "coalesced": self._coalesced,
            "rejected": self._rejected,
            "by_intent": {name: _shares(counts) for name, counts in self._by_intent.items()},
            "by_model": {name: _shares(counts) for name, counts in self._by_model.items()},
            "by_tenant": self.by_tenant(),
            "latency_s": _quantiles(self._seconds),
            "ttft_s": _quantiles(self._ttft),
            "tokens_saved": dict(self._tokens_saved),
            "time_saved_s": self._time_saved_s(),
        }

    @property
    def semantic_share(self) -> float:
        """The share of requests that were semantic hits."""
        total = self._outcomes.total()
        return self._outcomes["semantic"] / total if total else 0.0

    def by_tenant(self) -> dict[str, Any]:
        """Return each tenant's outcomes and tokens."""
        return {
            name: {**_shares(counts), "tokens": dict(self._tenant_tokens[name])}
            for name, counts in self._by_tenant.items()
        }

    def prefix_ttft(self) -> dict[str, dict[str, float | int | None]]:
        """Return the time to first token of generations, by whether half the prompt was cached."""
        return _quantiles(self._prefix_ttft)

    def _record_prefix(self, record: RequestRecord, ttft_s: float) -> None:
        if record.usage is None or record.outcome in HITS:
            return
        kind = "hit" if 2 * record.usage.cached_tokens >= record.usage.prompt_tokens else "miss"
        self._prefix_ttft[kind].add(ttft_s)

    def _tenant(self, name: str) -> str:
        known = name in self._by_tenant or len(self._by_tenant) < MAX_TENANTS
        return name if known else OTHER

    def _time_saved_s(self) -> float | None:
        """Estimate what the hits would have taken at the mean miss; None before any miss."""
        miss = self._seconds.get("miss")
        if miss is None or miss.mean_s is None:
            return None
        hits = [self._seconds[layer] for layer in HITS if layer in self._seconds]
        return sum(max(0.0, hit.count * miss.mean_s - hit.total_s) for hit in hits)


def _shares(counts: Counter[str]) -> dict[str, Any]:
    total = counts.total()
    looked_up = counts["exact"] + counts["semantic"] + counts["miss"]
    hits = counts["exact"] + counts["semantic"]
    return {
        "requests": total,
        "outcomes": dict(counts),
        "hit_rate": hits / looked_up if looked_up else None,
        "hit_rate_of_all": hits / total if total else None,
        "rates": {name: count / total for name, count in counts.items()},
    }


def _quantiles(
    histograms: Mapping[str, LatencyHistogram],
) -> dict[str, dict[str, float | int | None]]:
    return {
        outcome: {"count": seen.count, "p50": seen.quantile(0.5), "p99": seen.quantile(0.99)}
        for outcome, seen in histograms.items()
    }
