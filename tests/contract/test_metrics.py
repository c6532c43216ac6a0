"""Metrics that Prometheus reads and that add up; health that tells the truth."""

import shutil
import subprocess
import uuid
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.contract.client import Client, until
from tests.contract.conftest import Relay
from tests.fakes.upstream import FakeUpstream, refusal

NAMES = {
    "strata_requests": "counter",
    "strata_request_seconds": "histogram",
    "strata_ttft_seconds": "histogram",
    "strata_lookup_seconds": "histogram",
    "strata_entries": "gauge",
    "strata_breaker_open": "gauge",
    "strata_prefix_tokens": "counter",
    "strata_prefix_blocks": "gauge",
    "strata_prefix_bytes": "gauge",
    "strata_engine_batch_tokens": "gauge",
    "strata_engine_waiting": "gauge",
    "strata_engine_running": "gauge",
    "strata_tokens_saved": "counter",
    "strata_threshold": "gauge",
    "strata_hits_labelled": "counter",
    "strata_wrong_hit_ratio": "gauge",
    "strata_store_failures": "counter",
    "strata_upstream_requests": "counter",
    "strata_prefix_evictions": "counter",
}

ASKED = "How do I turn on the oven?"
REWORDED = "How do I switch on the oven?"


def values(text: str, name: str, by: str) -> dict[str, float]:
    """Sum a metric's samples by one label."""
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name:
                key = sample.labels.get(by, "")
                sums[key] = sums.get(key, 0) + sample.value
    return sums


def grown(after: str, before: str, name: str, by: str) -> dict[str, float]:
    old = values(before, name, by)
    new = {key: value - old.get(key, 0) for key, value in values(after, name, by).items()}
    return {key: value for key, value in new.items() if value}


def test_metrics_are_of_the_named_kinds_when_they_are_read(client: Client) -> None:
    """Every fixed name is there with its kind, read by Prometheus' own parser."""
    client.seed(ASKED)
    client.answer(ASKED)
    client.answer(REWORDED)
    kinds = {
        family.name: family.type for family in text_string_to_metric_families(client.metrics())
    }
    assert {name: kinds.get(name) for name in NAMES} == NAMES


def test_series_and_statistics_stay_few_when_callers_invent_names(relay: Relay) -> None:
    """What a caller makes up becomes no label and no key: 1,000 names of everything he names."""
    relay.seed(ASKED)
    relay.answer("Who is he?", headers={"x-strata-namespace": "one", "x-strata-tags": "one"})
    relay.chat("Who is he?", model="nobody-serves-this")
    relay.http.get("/v1/nowhere")

    def seen() -> tuple[set[str], set[str]]:
        series = {line.rpartition(" ")[0] for line in relay.metrics().splitlines()}
        return series, set(leaves(relay.http.get("/admin/stats").json()))

    before = seen()
    body = relay.body("Who is he?")
    for _ in range(1000):
        name = uuid.uuid4().hex
        headers = {
            **{f"x-strata-{part}": name for part in ("namespace", "tags", "intent")},
            "authorization": f"Bearer {name}",
            "x-request-id": name,
            "x-strata-actor": name,
        }
        relay.http.post("/v1/chat/completions", json=body, headers=headers)
        del headers["x-strata-intent"]
        asked = {**body, "model": name, "user": name, "metadata": {name: name}, name: name}
        relay.http.post("/v1/chat/completions", json=asked, headers=headers)
        relay.http.get(f"/v1/{name}")
        relay.http.request(name.upper(), "/v1/chat/completions")
    for old, new in zip(before, seen(), strict=True):
        assert len(new - old) < 20, sorted(new - old)[:20]


def leaves(tree: object, path: str = "") -> Iterator[str]:
    """Give the path of each value of some JSON."""
    if not isinstance(tree, dict):
        yield path
        return
    for name, value in tree.items():
        yield from leaves(value, f"{path}/{name}")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_metrics_please_promtool(client: Client) -> None:
    """Prometheus' linter has nothing to say."""
    client.answer(ASKED)
    checked = subprocess.run(
        ["promtool", "check", "metrics"],
        input=client.metrics(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_outcomes_sum_to_the_requests(relay: Relay, upstream: FakeUpstream) -> None:
    """Each request is counted once, under what it came to, hits under their layer."""
    before = relay.metrics()
    relay.seed(ASKED)
    relay.answer(ASKED)
    relay.stream(ASKED)
    relay.answer(REWORDED)
    relay.answer(ASKED, temperature=2)
    upstream.script = lambda call: refusal(500, {"error": {"message": "x"}})
    relay.chat("Name one metal.")
    relay.chat("Name one metal.", model="no-such-model")
    relay.chat("Name one metal.", temperature=9)

    def counted() -> dict[str, float]:
        return grown(relay.metrics(), before, "strata_requests_total", "outcome")

    until(lambda: sum(counted().values()) >= 8, what=f"counted: {counted()}")
    outcomes = counted()
    assert sum(outcomes.values()) == 8
    assert outcomes["exact"] == 2
    assert outcomes["semantic"] == 1
    assert outcomes["bypass"] == 1
    assert outcomes["miss"] >= 1
    after = relay.metrics()
    clocked = grown(after, before, "strata_request_seconds_count", "outcome")
    for outcome in ("exact", "semantic", "bypass"):
        assert clocked[outcome] == outcomes[outcome]
    assert grown(after, before, "strata_tokens_saved_total", "layer")


def test_upstream_answers_are_counted_by_status(relay: Relay, upstream: FakeUpstream) -> None:
    """Each try is counted under the upstream's name and how it was answered."""
    before = relay.metrics()
    relay.answer(ASKED)
    upstream.script = lambda call: refusal(429, {"error": {"message": "slow down"}})
    relay.chat("Name one metal.")
    counted = grown(relay.metrics(), before, "strata_upstream_requests_total", "status")
    assert counted == {"200": 1, "429": 3}


def test_labels_stay_bounded_when_clients_invent_models(relay: Relay) -> None:
    """Names from outside never become series."""
    for k in range(20):
        relay.chat("Hi", model=f"invented-{k}")
    assert "invented-" not in relay.metrics()


def test_prefix_tokens_are_counted_by_source(client: Client) -> None:
    """Tokens from the cache and computed ones sum to the prompts'."""
    before = client.metrics()
    system = {"role": "system", "content": "Be brief and friendly in every reply. " * 12}
    prompts = [
        client.answer([system, {"role": "user", "content": text}], max_tokens=2).json()["usage"]
        for text in ("Name one metal.", "How do I boil an egg?")
    ]
    cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in prompts)
    total = sum(usage["prompt_tokens"] for usage in prompts)
    assert cached > 0

    def counted() -> dict[str, float]:
        return grown(client.metrics(), before, "strata_prefix_tokens_total", "source")

    until(lambda: counted().get("device") == cached, what=f"{counted()} for {cached}")
    assert total - cached <= counted()["computed"] <= total - cached + 2 * 2


def test_health_names_every_part_when_all_is_well(client: Client) -> None:
    """Live and ready, part by part."""
    assert client.http.get("/health/live").status_code == 200
    ready = client.http.get("/health/ready")
    assert ready.status_code == 200
    assert {"redis", "qdrant", "embedder", "engine"} <= set(ready.json().get("parts", ready.json()))


def test_schema_describes_the_routes(client: Client) -> None:
    """The API is described by OpenAPI."""
    schema = client.http.get("/schema/openapi.json")
    assert schema.status_code == 200
    assert "/v1/chat/completions" in schema.json()["paths"]
