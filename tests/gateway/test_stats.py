"""Traffic statistics and their quantiles."""

import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import Usage
from gateway.latency import LatencyHistogram
from gateway.model_names import MAX_ANSWERED, MAX_LISTED, OTHER, ModelNames
from gateway.record import RequestRecord
from gateway.stats import TrafficStats


def names_of(*listed: str, pattern: str = "m") -> ModelNames:
    """Names of a gateway that lists some models and lets in all that begin so."""
    names = ModelNames()
    names.know(listed.__contains__, lambda name: name.startswith(pattern))
    return names


def record(**fields: Any) -> RequestRecord:
    usual: dict[str, Any] = {
        "request_id": "r",
        "route": "/v1/chat/completions",
        "tenant": "public",
        "model": "m",
        "intent": "factual",
        "outcome": "miss",
        "end": "ok",
        "seconds": 1.0,
        "ttft_s": 0.5,
        "usage": Usage(10, 5, 0),
    }
    return RequestRecord(**{**usual, **fields})


@given(st.lists(st.floats(1e-6, 4000), min_size=1, max_size=60), st.floats(0.01, 1))
def test_quantile_is_close_when_compared_with_the_sorted_list(
    values: list[float], share: float
) -> None:
    """A quantile is off by at most a sixty-fourth and one unit."""
    histogram = LatencyHistogram()
    for value in values:
        histogram.add(value)
    wanted = max(1, -(-share * len(values) // 1))
    exact = sorted(values)[int(wanted) - 1]
    assert histogram.quantile(share) == pytest.approx(exact, rel=1 / 64, abs=1e-6)
    assert histogram.mean_s == pytest.approx(statistics.fmean(values))


def test_memory_is_bounded_when_durations_are_wild() -> None:
    """However many durations come, the buckets stay few."""
    histogram = LatencyHistogram()
    for power in range(-12, 40):
        for step in range(200):
            histogram.add(2.0**power * (1 + step / 200))
    histogram.add(-1)
    assert len(histogram._counts) <= 36 * 32
    assert histogram.quantile(1) == pytest.approx(2**40 * 1e-6, rel=0.02)


def test_quantile_is_absent_when_nothing_was_timed() -> None:
    """No data is no number."""
    assert LatencyHistogram().quantile(0.5) is None


def test_outcomes_sum_to_requests_when_requests_end_in_every_way() -> None:
    """Each request counts once, as what it came to."""
    stats = TrafficStats(names_of("m"))
    for outcome in ("exact", "exact", "semantic", "miss", "bypass"):
        stats.record(record(outcome=outcome))
    stats.record(record(end="error", usage=None, ttft_s=None))
    stats.record(record(end="aborted", usage=None))
    shown = stats.snapshot()
    assert shown["requests"] == 7
    assert shown["outcomes"] == {
        "exact": 2, "semantic": 1, "miss": 1, "bypass": 1, "error": 1, "aborted": 1,
    }  # fmt: skip
    assert sum(shown["rates"].values()) == pytest.approx(1)
    assert shown["hit_rate"] == pytest.approx(3 / 4)
    assert shown["hit_rate_of_all"] == pytest.approx(3 / 7)
    assert shown["by_intent"]["factual"]["requests"] == 7
    assert shown["by_model"]["m"]["outcomes"]["exact"] == 2


def test_savings_are_counted_when_layers_spare_a_model() -> None:
    """Hits save whole answers, joined flights too, the prefix cache its tokens."""
    stats = TrafficStats()
    stats.record(record(outcome="exact", seconds=0.1))
    stats.record(record(outcome="semantic", seconds=0.1))
    stats.record(record(coalesced=True))
    stats.record(record(usage=Usage(10, 5, 8), seconds=2.0))
    shown = stats.snapshot()
    assert shown["tokens_saved"] == {"exact": 15, "semantic": 15, "flight": 15, "prefix": 8}
    assert shown["time_saved_s"] == pytest.approx(2 * 1.5 - 0.2)
    assert shown["coalesced"] == 1
    assert shown["latency_s"]["miss"]["count"] == 2
    assert stats.prefix_ttft()["hit"]["count"] == 1


def test_nothing_is_clocked_when_only_the_cache_was_asked() -> None:
    """A miss that nobody generated for counts as a request, and hides no generation's time."""
    stats = TrafficStats()
    stats.record(record(outcome="exact", seconds=0.1))
    stats.record(record(seconds=1.5))
    for _ in range(9):
        stats.record(record(seconds=0.01, ttft_s=None, usage=None))
    shown = stats.snapshot()
    assert shown["outcomes"] == {"exact": 1, "miss": 10}
    assert shown["latency_s"]["miss"]["count"] == 1
    assert shown["time_saved_s"] == pytest.approx(1.4)


def test_models_are_bounded_when_clients_invent_names() -> None:
    """Names that nobody serves fall together, and so do those that a pattern lets in unanswered."""
    stats = TrafficStats(names_of("real", pattern="gpt-"))
    for number in range(1000):
        stats.record(record(model=f"m{number}", end="error", usage=None))
        stats.record(record(model=f"gpt-{number}", end="error", usage=None))
    stats.record(record(model="real", end="error", usage=None))
    stats.record(record(model="gpt-x"))
    stats.record(record(model="gpt-x", end="error", usage=None))
    by_model = stats.snapshot()["by_model"]
    assert {name: seen["requests"] for name, seen in by_model.items()} == {
        OTHER: 2000, "real": 1, "gpt-x": 2,
    }  # fmt: skip


def test_listed_models_have_a_name_when_patterns_answered_any() -> None:
    """An upstream that answers whatever it is called takes nobody else's place."""
    names = names_of(*(f"l{number}" for number in range(2 * MAX_LISTED)))
    asked = [names.of(f"m{number}", answered=True) for number in range(1000)]
    assert len(set(asked)) == MAX_ANSWERED + 1
    listed = [names.of(f"l{number}", answered=False) for number in range(2 * MAX_LISTED)]
    assert len(set(listed)) == MAX_LISTED + 1
    assert names.of("l0", answered=False) == "l0"
    assert names.of("m0", answered=False) == "m0"
