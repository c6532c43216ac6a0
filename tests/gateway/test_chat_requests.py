"""``POST /v1/chat/completions`` in process: what is read, refused and counted of requests."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.auth import KeyRing
from gateway.keys_file import add_key
from gateway.settings import Settings
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import QUIET, MemoryGateway
from tests.fakes.pipeline import FakePipeline
from tests.gateway.chat import HI, URL, body, faked


async def test_call_carries_what_headers_and_body_say() -> None:
    """Tenant, namespace, control, and a body without the strata field reach the pipeline."""
    pipeline = FakePipeline()
    headers = {"x-strata-namespace": "blue", "cache-control": "no-store", "x-request-id": "my-1"}
    response = await faked(pipeline, headers=headers, strata={"query": "q"}, seed=None, top_k=3)
    assert response.headers["x-request-id"] == "my-1"
    call = pipeline.call
    assert (call.request_id, call.tenant.name, call.namespace) == ("my-1", "public", "blue")
    assert call.control.no_store
    assert call.control.query_text == "q"
    assert call.body == body(top_k=3)


@pytest.mark.parametrize("sent", ["a b", "x" * 200, "ü", ""])
async def test_request_id_is_ours_when_the_clients_is_not_plain(sent: str) -> None:
    """Nothing odd gets into logs and headers."""
    response = await faked(FakePipeline(), headers={"x-request-id": sent.encode()})
    assert response.headers["x-request-id"].startswith("req-")


@pytest.mark.parametrize(
    ("request_", "status", "param"),
    [
        ({"content": b'{"model":'}, 400, None),
        ({"content": b""}, 400, None),
        ({"content": b"[]"}, 400, None),
        ({"json": body(temperature=3)}, 400, "temperature"),
        ({"json": body(max_tokens=0)}, 400, "max_tokens"),
        ({"json": body(max_tokens=-1)}, 400, "max_tokens"),
        ({"json": body(messages=[])}, 400, "messages"),
        ({"json": {"messages": [HI]}}, 400, "model"),
        ({"json": body(model="no-such-model")}, 404, "model"),
        ({"json": body(), "headers": {"x-strata-ttl": "x"}}, 400, "x-strata-ttl"),
        ({"json": body(), "headers": {"x-strata-intent": "x"}}, 400, "x-strata-intent"),
        ({"json": body(), "headers": {"content-type": "text/plain"}}, 400, "content-type"),
        ({"json": body(), "headers": {"content-encoding": "gzip"}}, 415, "content-encoding"),
    ],
)
async def test_request_is_refused_when_it_is_wrong(
    client: httpx.AsyncClient, request_: dict[str, Any], status: int, param: str | None
) -> None:
    """P09: each is a JSON error naming the field, and the next good request succeeds."""
    headers = {"content-type": "application/json", **request_.pop("headers", {})}
    response = await client.post(URL, **request_, headers=headers)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["code"] == "model_not_found") == (status == 404)
    assert (await client.post(URL, json=body())).status_code == 200


@pytest.mark.parametrize("announced", [True, False])
async def test_body_is_refused_when_it_is_too_large(announced: bool) -> None:
    """The limit holds whether the length is announced or not."""
    settings = Settings(max_body_bytes=200, log=QUIET.log)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(30):
            yield b" " * 10

    content = b" " * 300 if announced else chunks()
    async with MemoryGateway(FakeBackend([]), settings).client() as client:
        headers = {"content-type": "application/json"}
        response = await client.post(URL, content=content, headers=headers)
        assert response.status_code == 413
        assert response.json()["error"]["type"] == "invalid_request_error"


async def test_key_is_asked_for_when_there_is_a_keys_file(tmp_path: Path) -> None:
    """Missing and unknown keys are 401 with a challenge; a known one is its tenant."""
    path = tmp_path / "keys.toml"
    _, key = add_key(path, "acme")
    pipeline = FakePipeline()
    gateway = MemoryGateway(FakeBackend([]))
    async with gateway.client(pipeline=pipeline, key_ring=KeyRing(path)) as client:
        for headers in ({}, {"authorization": "Bearer nope"}):
            response = await client.post(URL, json=body(), headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith("Bearer")
            assert response.json()["error"]["code"] == "invalid_api_key"
        assert not pipeline.calls
        for headers in ({"authorization": f"Bearer {key}"}, {"x-api-key": key}):
            assert (await client.post(URL, json=body(), headers=headers)).status_code == 200
            assert pipeline.call.tenant.name == "acme"
        assert (await client.get("/v1/models")).status_code == 401
        assert (await client.get("/health/live")).status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_method_is_refused_when_the_route_has_another(
    client: httpx.AsyncClient, method: str
) -> None:
    """405 in the envelope, naming what is allowed."""
    response = await client.request(method, URL)
    assert response.status_code == 405
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert "POST" in response.headers["allow"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v1/chat/completions/x"])
async def test_route_is_named_when_it_is_unknown(client: httpx.AsyncClient, path: str) -> None:
    """404 in the envelope."""
    response = await client.post(path, json={})
    assert response.status_code == 404
    assert path in response.json()["error"]["message"]
    assert response.headers["x-request-id"]


async def test_counters_sum_to_requests_when_requests_end_in_every_way() -> None:
    """Good, refused and failed requests are counted once each."""
    gateway = MemoryGateway(FakeBackend(whole("x")))
    async with gateway.client() as client:
        await client.post(URL, json=body())
        await client.post(URL, json=body())
        await client.post(URL, json=body(), headers={"cache-control": "no-cache, no-store"})
        await client.post(URL, json=body(model="nobody"))
        await client.post(URL, json=body(temperature=9))
        metrics = (await client.get("/metrics")).text
    shown = gateway.parts.stats.snapshot()
    assert shown["outcomes"] == {"miss": 1, "exact": 1, "bypass": 1, "error": 1}
    assert shown["rejected"] == 1
    counted = [
        float(line.rpartition(" ")[2])
        for line in metrics.splitlines()
        if line.startswith("strata_requests_total{")
    ]
    assert sum(counted) == 5


def test_documentation_lists_the_routes() -> None:
    """The schema names the public and the admin routes."""
    schema = MemoryGateway(FakeBackend([])).app().openapi_schema.to_schema()
    assert {URL, "/v1/models", "/admin/cache/entries", "/admin/stats"} <= set(schema["paths"])
    assert "ChatRequest" in str(schema["paths"][URL]["post"]["requestBody"])
