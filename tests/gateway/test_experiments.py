"""``/admin/experiments`` over a gateway in memory."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.gateway.learner import REWORDED, Learner, opened

ROUTE = "/admin/experiments"
NUM = 24


@pytest.fixture
async def learner() -> AsyncIterator[Learner]:
    async with opened(gray_share=0.0) as learner:
        yield learner


async def started(learner: Learner, **body: Any) -> Any:
    response = await learner.client.post(ROUTE, json={"intent": "general", **body})
    assert response.status_code == 201, response.text
    return response.json()


async def test_half_of_the_requests_obey_when_an_experiment_runs(learner: Learner) -> None:
    """By their keys; look-ups and hits are counted by arm, exact repeats are not."""
    await learner.store("made")
    experiment = await started(learner, a=1.0, b=0.0)
    assert (experiment["state"], experiment["verdict"]) == ("running", "running")
    outcomes = {}
    for at in range(NUM):
        headers = {"cache-control": "no-store"}
        text = f"{REWORDED}{' ' * at}"
        outcomes[text] = (await learner.ask(text, **headers)).headers["x-strata-cache"]
    shown = (await learner.client.get(f"{ROUTE}/{experiment['id']}")).json()
    hits = list(outcomes.values()).count("semantic")
    assert 0 < hits < NUM
    assert (shown["b"]["lookups"], shown["b"]["hits"]) == (hits, hits)
    assert shown["a"]["lookups"] == NUM - hits
    assert shown["a"]["hits"] == 0
    assert shown["b"]["hit_low"] <= 1.0 == shown["b"]["hit_share"]
    armed = await learner.listed(outcome="semantic")
    assert {request["arm"] for request in armed} == {"b"}


@pytest.mark.parametrize(("query", "threshold"), [("?apply=b", 0.5), ("?apply=a", 0.7), ("", None)])
async def test_experiment_ends_as_it_is_told(
    learner: Learner, query: str, threshold: float | None
) -> None:
    """An arm's threshold is set by hand, or everything is as before; it ends once."""
    before = (await learner.client.get("/admin/intents/general")).json()["threshold"]
    experiment = await started(learner, a=0.7, b=0.5)
    response = await learner.client.delete(f"{ROUTE}/{experiment['id']}{query}")
    assert response.json()["state"] == ("applied" if query else "dropped")
    after = (await learner.client.get("/admin/intents/general")).json()
    assert after["threshold"] == (before if threshold is None else threshold)
    again = await learner.client.delete(f"{ROUTE}?id={experiment['id']}")
    assert again.status_code == 409
    assert not learner.gateway.parts.cache.thresholds.trials
    listed = (await learner.client.get(ROUTE)).json()["experiments"]
    assert [one["id"] for one in listed] == [experiment["id"]]


async def test_second_experiment_is_refused_when_one_runs_on_the_intent(learner: Learner) -> None:
    """Two at once could not be told apart."""
    await started(learner, b=0.5)
    response = await learner.client.post(ROUTE, json={"intent": "general", "b": 0.6})
    assert response.status_code == 409
    await started(learner, intent="code", b=0.6)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"intent": "general"}, "b"),
        ({"intent": "general", "b": 1.5}, "b"),
        ({"intent": "general", "b": None}, "b"),
        ({"intent": "general", "b": 0.5, "a": "x"}, "a"),
        ({"intent": "generall", "b": 0.5}, "intent"),
        ({"intent": "general", "b": 0.5, "most": 0}, "most"),
        ({"intent": "general", "b": 0.5, "budget": -1}, "budget"),
        ({"intent": "general", "b": 0.5, "c": 1}, "c"),
    ],
)
async def test_experiment_is_refused_when_a_value_is_bad(
    learner: Learner, body: dict[str, Any], field: str
) -> None:
    """One clear error; nothing is started."""
    response = await learner.client.post(ROUTE, json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == field
    assert (await learner.client.get(ROUTE)).json() == {"experiments": []}


async def test_unknown_experiment_is_not_found(learner: Learner) -> None:
    """Nor is one that is not named ended."""
    assert (await learner.client.get(f"{ROUTE}/x")).status_code == 404
    assert (await learner.client.delete(f"{ROUTE}?id=x")).status_code == 404
    assert (await learner.client.delete(ROUTE)).status_code == 400
