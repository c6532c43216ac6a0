"""What one gateway learns holds on all over its store: verdicts, records, experiments, labels."""

import re
from typing import Any

from tests.contract.client import Client, until
from tests.contract.conftest import StartStack
from tests.contract.pair import Pair

SPREAD_S = 1.0
ASKED = "What is the capital of France?"
REWORDED = "What's France's capital city?"


def seeded(pair: Pair) -> list[Client]:
    """Store an answer at one gateway; return clients once both serve it by likeness."""
    one, two = pair.clients()
    one.seed(ASKED)
    for client in (one, two):
        until(lambda c=client: c.lookup(c.body(REWORDED))["outcome"] == "semantic", limit_s=5)
    return [one, two]


def say(client: Client, verdict: str, **about: str) -> Any:
    response = client.http.post("/admin/feedback", json={"verdict": verdict, **about})
    assert response.status_code == 200, response.text
    return response.json()


def labelled(client: Client, verdict: str) -> float:
    pattern = rf'strata_hits_labelled_total{{.*source="feedback",verdict="{verdict}"}} (\S+)'
    return sum(float(number) for number in re.findall(pattern, client.metrics()))


def test_wrong_pair_is_a_miss_everywhere_when_one_gateway_is_told(pair: Pair) -> None:
    """Within a second; the entry stays for its own question, the counter moves."""
    one, two = seeded(pair)
    served = two.answer(REWORDED)
    assert served.headers["x-strata-cache"] == "semantic"
    before = labelled(one, "wrong")
    request_id = served.headers["x-request-id"]
    until(
        lambda: one.http.get(f"/admin/requests/{request_id}").status_code == 200,
        limit_s=SPREAD_S,
        what="recorded for both",
    )
    told = say(one, "wrong", request_id=request_id)
    assert (told["dropped"], told["entry"]) == ("pair", served.headers["x-strata-entry"])
    assert labelled(one, "wrong") == before + 1
    for client in (one, two):
        until(lambda c=client: c.lookup(c.body(REWORDED))["outcome"] == "miss", limit_s=SPREAD_S)
        assert client.answer(ASKED).headers["x-strata-cache"] == "exact"
    assert two.answer(REWORDED).headers["x-strata-cache"] == "miss"


def test_entry_is_gone_everywhere_when_it_is_called_wrong(pair: Pair) -> None:
    """Named by the header that every hit carries."""
    one, two = seeded(pair)
    entry = one.answer(ASKED).headers["x-strata-entry"]
    assert say(one, "wrong", entry=entry)["dropped"] == "entry"
    assert two.answer(ASKED).headers["x-strata-cache"] == "miss"


def test_request_is_shown_with_its_reasons_wherever_it_was_made(pair: Pair) -> None:
    """The shown score is the one that was compared; the texts are the caller's."""
    one, two = seeded(pair)
    served = two.answer(REWORDED)
    request_id = served.headers["x-request-id"]
    until(lambda: one.http.get(f"/admin/requests/{request_id}").status_code == 200, limit_s=2)
    shown = one.http.get(f"/admin/requests/{request_id}").json()
    assert shown["outcome"] == "semantic"
    assert f"{shown['score']:.6g}" == served.headers["x-strata-score"]
    assert f"{shown['threshold']:.6g}" == served.headers["x-strata-threshold"]
    assert shown["entry"] == served.headers["x-strata-entry"]
    assert (shown["question"], shown["stored_question"]) == (REWORDED, ASKED)
    assert shown["answer"] == f"ECHO:{ASKED}"
    assert shown["reasons"][-1]["check"] == "threshold"


def test_label_moves_the_bounds_on_both_gateways(pair: Pair) -> None:
    """Intent, curve and statistics tell of it."""
    one, two = seeded(pair)
    served = one.answer(REWORDED)
    intent = served.headers["x-strata-intent"]

    def known(client: Client) -> int:
        wrong_hits = client.http.get("/admin/stats").json()["wrong_hits"]
        return int(wrong_hits.get(intent, {"labels": 0})["labels"])

    before = known(two)
    say(one, "right", request_id=served.headers["x-request-id"])
    for client in (one, two):
        until(lambda c=client: known(c) == before + 1, limit_s=5)
    curves = [client.http.get(f"/admin/intents/{intent}/curve").json() for client in (one, two)]
    assert curves[0] == curves[1]
    assert curves[0]["labels"] > 0
    estimate = two.http.get("/admin/stats").json()["wrong_hits"]["all"]
    assert 0 <= estimate["low"] <= estimate["share"] <= estimate["high"] <= 1


def test_imported_labels_open_an_intent_on_both_gateways(pair: Pair) -> None:
    """Six hundred right pairs prove its budget; given again they count once."""
    one, two = pair.clients()
    rows = [
        {"a": f"stored {i}", "b": f"asked {i}", "score": 0.9, "right": True, "intent": "creative"}
        for i in range(600)
    ]
    for _ in range(2):
        response = one.http.post("/admin/labels", json={"labels": rows})
        assert (response.status_code, response.json()) == (200, {"imported": 600})

    def intent(client: Client) -> dict[str, Any]:
        return dict(client.http.get("/admin/intents/creative").json())

    for client in (one, two):
        until(lambda c=client: intent(c)["labels"]["count"] == 600, limit_s=120)
        until(lambda c=client: intent(c)["source"] == "own", limit_s=120)
        assert (intent(client)["labels"]["count"], intent(client)["threshold"]) == (600, 0.9)


def test_labels_are_refused_when_a_field_or_the_scorer_is_wrong(pair: Pair) -> None:
    """The field is named; nothing of the batch is kept."""
    client = pair.clients()[0]
    row = {"score": 0.9, "right": True, "intent": "translation"}
    for body, named in [
        ({"labels": [row, {**row, "score": 1.5}]}, "labels[1].score"),
        ({"labels": [row, {**row, "weight": 0.5}]}, "labels[1].weight"),
        ({"labels": [{**row, "right": "yes"}]}, "labels[0].right"),
        ({"labels": [row, {**row, "intent": "nobody's"}]}, "labels[1].intent"),
        ({"labels": [row], "scorer": "another"}, "scorer"),
        ({"labels": []}, "labels"),
        ({}, "labels"),
    ]:
        response = client.http.post("/admin/labels", json=body)
        assert response.status_code == 400, response.text
        assert named in response.json()["error"]["message"]
    assert client.http.get("/admin/intents/translation").json()["labels"]["count"] == 0


def test_experiment_runs_on_both_gateways_when_one_starts_it(pair: Pair) -> None:
    """Each request has the same arm wherever it is asked; ended, all is as before."""
    one, two = seeded(pair)
    body = {"intent": "factual", "a": 1.0, "b": 0.0}
    response = one.http.post("/admin/experiments", json=body)
    assert response.status_code == 201, response.text
    experiment = response.json()["id"]
    headers = {"x-strata-intent": "factual"}
    texts = [f"{REWORDED}{'?' * at}" for at in range(12)]

    def outcomes(client: Client) -> list[str]:
        return [client.lookup(client.body(text), headers)["outcome"] for text in texts]

    try:
        until(lambda: outcomes(one) == outcomes(two), limit_s=SPREAD_S + 4)
        assert set(outcomes(two)) == {"semantic", "miss"}
    finally:
        ended = two.http.delete(f"/admin/experiments/{experiment}")
        assert ended.json()["state"] == "dropped"
    until(lambda: set(outcomes(one)) == {"semantic"}, limit_s=SPREAD_S + 4)


def test_defaults_grow_stricter_when_near_misses_are_wrong(start_stack: StartStack) -> None:
    """A rewording that defaults serve is a miss then, one that rules prove is not; all is told."""
    client = start_stack(LOCAL__MODEL="none").client

    def general() -> dict[str, Any]:
        return dict(client.http.get("/admin/intents/general").json())

    assert general()["source"] == "prior"
    assert general()["doubted"] is None
    prior = general()["prior"]
    rows = [
        {"a": f"stored {i}", "b": f"asked {i}", "score": 0.6, "right": False, "intent": "general"}
        for i in range(12)
    ]
    client.http.post("/admin/labels", json={"labels": rows}).raise_for_status()
    until(lambda: general()["source"] == "doubted")
    assert general()["threshold"] == general()["doubted"] == 0.9995
    assert general()["prior"] == prior < 0.9995, "what was fitted is shown beside it"
    assert client.http.get("/admin/stats").json()["near_misses"]["trap_odds"] > 10
    assert "Near-misses are wrong" in client.http.get("/admin/doctor").text
