"""Models, health and metrics routes."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.backends.base import PartHealth
from gateway.readings import Health
from semantic_layer import MemoryResponseStore, MemoryVectorIndex, SemanticCache, StoreUnavailable
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with MemoryGateway(FakeBackend(whole("x"), model_id="org/model-1")).client() as client:
        yield client


async def test_models_are_listed_in_openais_shape(client: httpx.AsyncClient) -> None:
    """A client finds each model by its id, slashes too."""
    listed = (await client.get("/v1/models")).json()
    model = {"id": "org/model-1", "created": 0, "owned_by": "fake", "object": "model"}
    assert listed == {"object": "list", "data": [model]}
    assert (await client.get("/v1/models/org/model-1")).json() == model
    assert (await client.get("/v1/models/org%2Fmodel-1")).json() == model


async def test_model_is_not_found_when_nobody_serves_it(client: httpx.AsyncClient) -> None:
    """404 model_not_found in the envelope."""
    response = await client.get("/v1/models/gpt-nothing")
    assert response.status_code == 404
    error = response.json()["error"]
    assert (error["code"], error["param"]) == ("model_not_found", "model")


async def test_health_names_every_part_when_all_is_well(client: httpx.AsyncClient) -> None:
    """Each part has its state; what is switched off does not spoil the whole."""
    assert (await client.get("/health/live")).json() == {"status": "alive"}
    response = await client.get("/health/ready")
    assert response.status_code == 200
    health = response.json()
    assert {"status", "redis", "qdrant", "embedder", "engine", "upstreams"} == set(health)
    assert health["redis"] == {"ok": True, "state": "ready", "detail": ""}
    assert health["engine"]["state"] == "off"


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
async def test_health_has_no_body_when_only_the_head_is_asked(path: str) -> None:
    """A probe that sends HEAD sees what GET says: status, type and length."""
    async with (
        MemoryGateway(FakeBackend(whole("x"))).listening() as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        whole_answer, head = await client.get(path), await client.head(path)
        assert (await client.get(path)).status_code == 200
    assert head.status_code == whole_answer.status_code == 200
    assert head.content == b""
    for name in ("content-type", "content-length"):
        assert head.headers[name] == whole_answer.headers[name]


class BrokenStore(MemoryResponseStore):
    async def ping(self) -> None:
        raise StoreUnavailable("redis", "down")


async def test_health_is_503_when_no_request_could_be_answered() -> None:
    """Without a store that gives hits and without any backend nothing can be answered."""
    gateway = MemoryGateway(FakeBackend([]))
    cache = SemanticCache(store=BrokenStore(), index=MemoryVectorIndex(1), embedder=None)
    async with gateway.client(cache=cache) as client:
        response = await client.get("/health/ready")
    assert response.status_code == 503
    assert response.json()["redis"]["ok"] is False


UP = PartHealth(True, "ready")
DOWN = PartHealth(False, "down")
STARTING = PartHealth(False, "starting")


@pytest.mark.parametrize(
    ("redis", "engine", "upstreams", "expected"),
    [
        (UP, DOWN, {}, True),
        (DOWN, UP, {}, True),
        (DOWN, STARTING, {}, True),
        (DOWN, DOWN, {"a": DOWN, "b": UP}, True),
        (DOWN, DOWN, {"a": DOWN}, False),
        (DOWN, DOWN, {}, False),
    ],
)
def test_readiness_follows_what_can_still_answer(
    redis: PartHealth, engine: PartHealth, upstreams: dict[str, PartHealth], expected: bool
) -> None:
    """One part that can still answer keeps the gateway in service."""
    health = Health({"redis": redis, "qdrant": UP, "engine": engine}, upstreams)
    assert health.can_answer is expected
    assert not health.is_whole


async def test_metrics_parse_when_traffic_has_passed(client: httpx.AsyncClient) -> None:
    """A scraper can read the text, and finds requests and entries."""
    body: dict[str, Any] = {"model": "org/model-1", "messages": [{"role": "user", "content": "x"}]}
    for _ in range(2):
        await client.post("/v1/chat/completions", json=body)
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {
        (sample.name, sample.labels.get("outcome") or sample.labels.get("store")): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }
    assert samples["strata_requests_total", "miss"] == 1
    assert samples["strata_requests_total", "exact"] == 1
    assert samples["strata_entries", "redis"] == 1
    assert "strata_threshold" in response.text
    assert "strata_breaker_open" in response.text
