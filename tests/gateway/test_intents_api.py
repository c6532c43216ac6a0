"""``/admin/intents`` over a gateway in memory."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from semantic_layer import INTENTS, Row
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway

ALL, ONE = "/admin/intents", "/admin/intents/factual"


@pytest.fixture
def gateway() -> MemoryGateway:
    return MemoryGateway(FakeBackend(whole("made")))


@pytest.fixture
async def client(gateway: MemoryGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with gateway.client() as client:
        yield client


async def put(client: httpx.AsyncClient, body: Any, route: str = ONE, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await client.put(route, json=body, headers=named)
    assert response.status_code == 200, response.text
    return response.json()


async def test_intents_are_as_the_settings_say_before_any_change(client: httpx.AsyncClient) -> None:
    """Each known intent with its prior, the budget and the time to live."""
    listed = (await client.get(ALL)).json()["intents"]
    assert {intent["name"] for intent in listed} >= set(INTENTS)
    factual = next(intent for intent in listed if intent["name"] == "factual")
    assert factual["mode"] == "auto"
    assert factual["source"] == "prior"
    assert factual["threshold"] == factual["prior"] == 0.95
    assert factual["doubted"] is None
    assert (factual["budget"], factual["version"]) == (0.01, 0)
    assert factual["ttl"] > 0


async def test_policy_is_in_force_when_it_was_put(
    client: httpx.AsyncClient, gateway: MemoryGateway
) -> None:
    """A policy is replaced whole: what is left out returns to the settings."""
    shown = await put(client, {"threshold": 0.5, "budget": 0.05, "ttl": 60})
    assert (shown["mode"], shown["threshold"], shown["source"]) == ("manual", 0.5, "manual")
    assert (shown["budget"], shown["ttl"]) == (0.05, 60)
    assert gateway.parts.cache.thresholds.of("factual") == 0.5
    assert 'strata_threshold{intent="factual"} 0.5' in (await client.get("/metrics")).text
    shown = await put(client, {"mode": "off"})
    assert (shown["mode"], shown["threshold"], shown["budget"]) == ("off", 0.95, 0.01)
    assert gateway.parts.cache.thresholds.off == {"factual"}
    shown = await put(client, {"budget": 0.02})
    assert shown["threshold"] == pytest.approx(0.90)


async def test_intent_is_as_before_when_its_policy_is_deleted(
    client: httpx.AsyncClient, gateway: MemoryGateway
) -> None:
    """Deleting twice is no mistake, and labels read meanwhile leave nothing behind."""
    before = (await client.get(ONE)).json()
    await put(client, {"threshold": 0.2})
    await gateway.parts.evidence.trainer.learn()
    for _ in range(2):
        response = await client.delete(ONE)
        assert response.status_code == 200
    assert {**response.json(), "version": 0} == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"threshold": -0.1}', "threshold"),
        ('{"threshold": 1.5}', "threshold"),
        ('{"threshold": "abc"}', "threshold"),
        ('{"threshold": "0.5"}', "threshold"),
        ('{"threshold": true}', "threshold"),
        ('{"threshold": null}', "threshold"),
        ('{"threshold": NaN}', "threshold"),
        ('{"threshold": -Infinity}', "threshold"),
        ('{"threshold": 1e999}', "threshold"),
        ('{"threshold": [0.5]}', "threshold"),
        ('{"mode": "manual"}', "threshold"),
        ('{"mode": "auto", "threshold": 0.5}', "threshold"),
        ('{"threshold": 0.5, "budget": 1.01}', "budget"),
        ('{"threshold": 0.5, "budget": null}', "budget"),
        ('{"threshold": 0.5, "ttl": 0}', "ttl"),
        ('{"threshold": 0.5, "ttl": -5}', "ttl"),
        ('{"threshold": 0.5, "mode": "sometimes"}', "mode"),
        ('{"threshold": 0.5, "treshold": 0.5}', "treshold"),
    ],
)
async def test_nothing_changes_when_a_value_is_bad(
    client: httpx.AsyncClient, body: str, field: str
) -> None:
    """O01: a bad value is a 400 that names its field; the old policy stays as a whole."""
    before = await put(client, {"threshold": 0.7})
    response = await client.put(ONE, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == field
    assert field in response.json()["error"]["message"]
    assert (await client.get(ONE)).json() == before


@pytest.mark.parametrize("body", ["", "[]", "0.5", '{"threshold": 0.5', "null"])
async def test_put_is_refused_when_its_body_is_no_object(
    client: httpx.AsyncClient, body: str
) -> None:
    """Whatever it is instead."""
    response = await client.put(ONE, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400


async def test_put_is_refused_when_it_names_nothing(client: httpx.AsyncClient) -> None:
    """It would reset the policy, which is what DELETE is for; it is told what can be named."""
    before = await put(client, {"threshold": 0.7})
    response = await client.put(ONE, json={})
    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert all(name in message for name in ("mode", "threshold", "budget", "ttl", "DELETE"))
    assert (await client.get(ONE)).json() == before


async def test_change_is_refused_when_another_came_between(client: httpx.AsyncClient) -> None:
    """Two writers with the same ETag: one wins whole, the other is told."""
    etag = (await client.get(ONE)).headers["etag"]
    first = await client.put(ONE, json={"threshold": 0.6}, headers={"if-match": etag})
    assert first.status_code == 200
    for method, body in (("PUT", {"threshold": 0.1}), ("DELETE", None)):
        late = await client.request(method, ONE, json=body, headers={"if-match": etag})
        assert late.status_code == 412
        assert late.json()["error"]["param"] == "if-match"
    assert (await client.get(ONE)).json()["threshold"] == 0.6
    headers = {"if-match": first.headers["etag"]}
    assert (await client.put(ONE, json={"mode": "off"}, headers=headers)).status_code == 200
    bad = await client.put(ONE, json={"mode": "off"}, headers={"if-match": '"x"'})
    assert bad.status_code == 400


async def test_history_tells_what_was_changed_and_by_whom(client: httpx.AsyncClient) -> None:
    """Newest first, of this intent alone."""
    await put(client, {"threshold": 0.6}, x_strata_actor="Ada")
    await put(client, {"threshold": 0.1}, "/admin/intents/code")
    await client.delete(ONE)
    response = await client.get(f"{ONE}/history")
    latest, first = response.json()["changes"]
    assert (latest["actor"], latest["after"], latest["before"]["threshold"]) == ("admin", None, 0.6)
    assert (first["actor"], first["before"], first["after"]["mode"]) == ("Ada", None, "manual")
    assert latest["version"] > first["version"]
    assert latest["at"] >= first["at"] > 1e9
    assert len((await client.get(f"{ONE}/history?limit=1")).json()["changes"]) == 1
    assert (await client.get(f"{ONE}/history?limit=0")).status_code == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_unknown_intent_is_named_when_it_is_asked_for(
    client: httpx.AsyncClient, method: str
) -> None:
    """A typo makes no intent."""
    response = await client.request(method, "/admin/intents/factuall", json={"threshold": 0.5})
    assert response.status_code == 404
    assert "factual" in response.json()["error"]["message"]


UNREADABLE = [Row("factual", 7, b"", is_shut=True), Row("factual", 7, b"\xc1 of another version")]


@pytest.mark.parametrize("row", UNREADABLE, ids=["of another key", "of another version"])
async def test_policy_that_cannot_be_read_is_replaced_only_when_that_is_said(
    client: httpx.AsyncClient, gateway: MemoryGateway, row: Row
) -> None:
    """Neither by PUT nor by DELETE nor with its ETag; the view tells that it is there."""
    gateway.evidence.intents.take([row])
    shown = await client.get(ONE)
    assert (shown.json()["unreadable"], shown.json()["policy"]) == (True, None)
    seen = {"if-match": shown.headers["etag"]}
    for method, body in (("PUT", {"threshold": 0.6}), ("DELETE", None)):
        refused = await client.request(method, ONE, json=body, headers=seen)
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "policy_unreadable"
        assert "replace_unreadable=1" in refused.json()["error"]["message"]
    assert (await client.get(ONE)).headers["etag"] == seen["if-match"]
    assert (await client.put(f"{ONE}?replace=1", json={"mode": "off"})).status_code == 400
    await put(client, {"threshold": 0.6}, f"{ONE}?replace_unreadable=1")


async def test_policy_taken_back_is_no_obstacle(
    client: httpx.AsyncClient, gateway: MemoryGateway
) -> None:
    """Its row stays, and is empty."""
    gateway.evidence.intents.take([Row("factual", 7, b"")])
    assert (await client.get(ONE)).json()["unreadable"] is False
    gateway.evidence.intents.forget()
    await put(client, {"threshold": 0.6})
