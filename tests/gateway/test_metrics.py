"""The Prometheus series."""

from prometheus_client.parser import text_string_to_metric_families

from gateway.backends.base import Usage
from gateway.metrics import MAX_INTENTS, Metrics
from prefix_layer import EngineStats
from tests.gateway.test_stats import names_of, record


def series(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def total(metrics: Metrics, name: str, **labels: str) -> float:
    return sum(
        value
        for (found, pairs), value in series(metrics).items()
        if found == name and labels.items() <= dict(pairs).items()
    )


def known() -> Metrics:
    return Metrics(names_of("m", pattern="?"))


def test_outcomes_sum_to_requests_when_all_kinds_are_recorded() -> None:
    """Every request is in exactly one series, refused ones too."""
    metrics = known()
    for outcome in ("exact", "semantic", "miss", "bypass"):
        metrics.record(record(outcome=outcome))
    metrics.record(record(end="error", usage=None))
    metrics.record(record(end="aborted", usage=None))
    metrics.reject("/v1/chat/completions")
    assert total(metrics, "strata_requests_total") == 7
    for outcome in ("exact", "semantic", "miss", "bypass", "error", "aborted", "rejected"):
        assert total(metrics, "strata_requests_total", outcome=outcome) == 1
    assert total(metrics, "strata_request_seconds_count") == 6
    assert total(metrics, "strata_ttft_seconds_count", outcome="exact") == 1


def test_request_is_counted_and_clocked_alike_when_only_the_cache_was_asked() -> None:
    """Counts and seconds of an outcome stay equal, whatever the request allowed."""
    metrics = known()
    metrics.record(record(usage=None, ttft_s=None))
    assert total(metrics, "strata_requests_total", outcome="miss") == 1
    assert total(metrics, "strata_request_seconds_count", outcome="miss") == 1


def test_tokens_saved_are_split_when_layers_differ() -> None:
    """Each layer's savings stand alone."""
    metrics = known()
    metrics.record(record(outcome="exact"))
    metrics.record(record(usage=Usage(10, 5, 7)))
    assert total(metrics, "strata_tokens_saved_total", layer="exact") == 15
    assert total(metrics, "strata_tokens_saved_total", layer="prefix") == 7


def test_labels_are_bounded_when_clients_invent_values() -> None:
    """Unknown models and too many intents do not become series."""
    metrics = known()
    for number in range(500):
        metrics.record(record(model=f"m{number}", intent=f"i{number}"))
    found = series(metrics)
    labels = [dict(pairs) for name, pairs in found if name == "strata_requests_total"]
    assert {label["model"] for label in labels} == {"other"}
    assert len({label["intent"] for label in labels}) <= MAX_INTENTS + 1


def test_registries_are_apart_when_two_gateways_live_in_one_process() -> None:
    """No series is global."""
    first, second = known(), known()
    first.record(record())
    assert total(second, "strata_requests_total") == 0


def test_engine_series_follow_its_last_reading() -> None:
    """The engine's totals are shown as they are, and nothing when there is no engine."""
    metrics = known()
    assert "strata_prefix_tokens_total" not in metrics.render().decode()
    metrics.set_engine(
        EngineStats(
            request_id="",
            block_size=16,
            num_blocks=10,
            blocks_by_state={"free": 7, "cached": 2, "active": 1},
            bytes_by_tier={"device": 640},
            tokens_by_source={"device": 32, "computed": 50},
            evictions_by_tier={"device": 3},
            num_waiting=1,
            num_running=2,
            batch_tokens=17,
        )
    )
    assert total(metrics, "strata_prefix_tokens_total", source="device") == 32
    assert total(metrics, "strata_prefix_blocks") == 10
    assert total(metrics, "strata_prefix_evictions_total", tier="device") == 3
    assert total(metrics, "strata_prefix_bytes", tier="device") == 640
    assert total(metrics, "strata_engine_running") == 2
    assert total(metrics, "strata_engine_batch_tokens") == 17


def test_every_other_series_has_its_name_of_the_contract() -> None:
    """Names are what users' dashboards rest on."""
    metrics = known()
    metrics.observe_lookup("exact", 0.001)
    metrics.count_store_failure("redis")
    metrics.count_upstream("vllm", "200")
    metrics.set_breaker("redis", is_open=True)
    metrics.set_entries({"redis": 5})
    metrics.set_thresholds({"factual": 0.95})
    metrics.count_dropped()
    assert total(metrics, "strata_lookup_seconds_count", stage="exact") == 1
    assert total(metrics, "strata_store_failures_total", store="redis") == 1
    assert total(metrics, "strata_upstream_requests_total", upstream="vllm", status="200") == 1
    assert total(metrics, "strata_breaker_open", part="redis") == 1
    assert total(metrics, "strata_entries", store="redis") == 5
    assert total(metrics, "strata_threshold", intent="factual") == 0.95
    assert total(metrics, "strata_write_back_dropped_total") == 1
