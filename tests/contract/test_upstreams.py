"""Upstream engines behind the gateway: replicas, fallbacks, names, drain (field cases P01, F05)."""

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.contract.client import Client, until
from tests.contract.fleet import Fleet, FleetClient, toml, ups, views
from tests.contract.stack import serving
from tests.fakes.upstream import (
    DONE,
    Answer,
    Call,
    FakeUpstream,
    Gate,
    chunk,
    echo,
    refusal,
    streamed,
    usage,
    usage_chunk,
)

FAULT = {"error": {"message": "scripted", "type": "server_error", "param": None, "code": None}}
DROPPED = Answer([], ending="cut")
PROMPT = "Recite ten lines about snow."
LINES = [f"雪 line {k} 🌙\n" for k in range(10)]
TEXT = "".join(LINES)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        one, two = (stack.enter_context(FakeUpstream()) for _ in range(2))
        spare = stack.enter_context(FakeUpstream(models=["spare-model"]))
        settings = {"LOCAL__MODEL": "none", "SEMANTIC__ENABLED": "false"}
        gateway = serving(
            tmp_path_factory.mktemp("fleet"),
            serving_models,
            toml=toml(one.base_url, two.base_url, spare.base_url),
            **settings,
        )
        yield Fleet(stack.enter_context(gateway), one, two, spare)


@pytest.fixture
def fleet(running: Fleet) -> Fleet:
    """The fleet, everything echoing and counted from nothing."""
    running.script()
    for fake in running.fakes:
        fake.calls.clear()
    return running


@pytest.fixture
def caller(fleet: Fleet) -> Iterator[Client]:
    """A caller in a cache space of its own, to whom both replicas are up."""
    client = FleetClient(fleet.stack.url, {"x-strata-namespace": uuid.uuid4().hex})
    until(lambda: ups(client) == [True, True], what="both replicas up")
    yield client
    client.close()


@pytest.mark.parametrize("stream", [True, False])
def test_whole_answer_comes_when_a_replica_dies_before_the_first_byte(
    fleet: Fleet, caller: Client, stream: bool
) -> None:
    """Whichever of the two is broken, the client sees nothing of it."""
    for broken in ({"one": lambda call: DROPPED}, {"two": lambda call: DROPPED}):
        fleet.script(**broken)
        for k in range(2):
            prompt = f"Name {k} of {sorted(broken)}."
            if stream:
                assert caller.stream(prompt).text == f"ECHO:{prompt}"
            else:
                content = caller.answer(prompt).json()["choices"][0]["message"]["content"]
                assert content == f"ECHO:{prompt}"


def test_text_is_whole_when_retries_and_byte_cuts_meet(fleet: Fleet, caller: Client) -> None:
    """P01: after a replica that gave no byte, the next one's Unicode comes through every cut."""
    pieces = streamed(LINES)
    joined = b"".join(pieces)
    for at in range(1, len(joined), 97):
        cut = Answer([joined[:at], joined[at:]])
        fleet.script(one=lambda call: DROPPED, two=lambda call, cut=cut: cut)
        answer = caller.stream(PROMPT, headers={"cache-control": "no-cache, no-store"})
        assert answer.text == TEXT
        assert "\ufffd" not in answer.text
        fleet.script()


BROKEN = {
    "cut after a line": Answer(streamed(LINES)[:2], ending="cut"),
    "done without a finish": Answer([*streamed(LINES)[:5], DONE]),
    "ended early": Answer(streamed(LINES)[:5]),
}


@pytest.mark.parametrize("ending", BROKEN)
def test_nothing_is_stored_or_tried_again_when_an_answer_breaks(
    fleet: Fleet, caller: Client, ending: str
) -> None:
    """F05: an error event, no second try, no stand-in, and the repeat is new."""
    fleet.script(one=lambda call: BROKEN[ending], two=lambda call: BROKEN[ending])
    broken = caller.stream(PROMPT)
    assert all(reason is None for reason in broken.finish_reasons)
    assert "error" in broken.chunks[-1]
    assert (sum(fleet.num_calls[:2]), fleet.num_calls[2]) == (1, 0)
    whole = Answer(streamed(LINES))
    fleet.script(one=lambda call: whole, two=lambda call: whole)
    repeat = caller.stream(PROMPT)
    assert (repeat.cache, repeat.text) == ("miss", TEXT)
    until(lambda: caller.lookup(caller.body(PROMPT))["outcome"] == "exact")
    assert caller.stream(PROMPT).text == TEXT


@pytest.mark.parametrize("failure", [DROPPED, refusal(503, FAULT), refusal(429, FAULT)])
def test_stand_in_answers_and_is_not_stored_when_all_replicas_fail(
    fleet: Fleet, caller: Client, failure: Answer
) -> None:
    """F05: another model's answer is given, never kept as the asked one's."""
    fleet.script(one=lambda call: failure, two=lambda call: failure)
    assert caller.stream(PROMPT).text == f"ECHO:{PROMPT}"
    assert fleet.spare.calls[-1].body["model"] == "spare-model"
    fleet.script()
    assert caller.lookup(caller.body(PROMPT))["outcome"] == "miss"
    assert caller.entries(namespace=caller.http.headers["x-strata-namespace"]) == []
    assert caller.answer(PROMPT).headers["x-strata-cache"] == "miss"


def test_hang_is_a_timeout_when_no_replica_says_a_word(fleet: Fleet, caller: Client) -> None:
    """504 within the limit of the settings; nothing is kept."""
    gate = Gate()
    fleet.script(one=lambda call: Answer([gate]), two=lambda call: Answer([gate]))
    response = caller.chat(PROMPT, model="alone")
    gate.open()
    assert (response.status_code, response.json()["error"]["code"]) == (504, "backend_timeout")
    fleet.script()
    assert caller.answer(PROMPT, model="alone").headers["x-strata-cache"] == "miss"


def test_wait_is_relayed_when_it_is_longer_than_a_request_waits(
    fleet: Fleet, caller: Client
) -> None:
    """429 with the upstream's own ``Retry-After`` and body; a short wait is waited."""
    busy = refusal(429, FAULT, retry_after="40")
    fleet.script(one=lambda call: busy, two=lambda call: busy)
    response = caller.chat(PROMPT, model="alone")
    assert (response.status_code, response.headers["retry-after"]) == (429, "40")
    assert response.json() == FAULT
    assert fleet.num_calls[:2] == [1, 1]
    waiting = [refusal(429, FAULT, retry_after="1"), refusal(429, FAULT, retry_after="1")]

    def short(call: Call) -> Answer:
        return waiting.pop() if waiting else echo(call)

    fleet.script(one=short, two=short)
    assert caller.answer(PROMPT, model="alone").status_code == 200


def test_names_are_listed_and_reach_their_models(fleet: Fleet, caller: Client) -> None:
    """Named, aliased and discovered ones."""
    listed = {row["id"]: row["owned_by"] for row in caller.http.get("/v1/models").json()["data"]}
    assert {"stub-model", "alone", "best"} <= {name for name in listed if listed[name] == "pair"}
    assert listed["spare-model"] == "spare"
    reply = caller.answer(PROMPT, model="best").json()
    assert reply["model"] == "best"
    sent = fleet.one.calls + fleet.two.calls
    assert [call.body["model"] for call in sent] == ["stub-model"]
    assert caller.chat(PROMPT, model="worst").status_code == 404


def test_unknown_fields_reach_the_engine_untouched(fleet: Fleet, caller: Client) -> None:
    """What we do not know is not ours to judge."""
    fields = {"top_k": 7, "x_new": {"deep": [1, {"a": None}]}, "reasoning_effort": "low"}
    caller.answer(PROMPT, **fields)
    [call] = fleet.one.calls + fleet.two.calls
    assert {name: call.body[name] for name in fields} == fields


def test_relayed_header_separates_answers_when_its_value_differs(
    fleet: Fleet, caller: Client
) -> None:
    """A header that the engine sees may change its answer; others are neither sent nor counted."""
    space = {"namespace": caller.http.headers["x-strata-namespace"]}
    for team, cache in [("red", "miss"), ("red", "exact"), ("blue", "miss"), ("", "miss")]:
        headers = {"x-team": team, "x-other": uuid.uuid4().hex} if team else {}
        assert caller.answer(PROMPT, headers=headers).headers["x-strata-cache"] == cache
        until(lambda: len(caller.entries(**space)) == sum(fleet.num_calls))
    sent = [call.headers for call in fleet.one.calls + fleet.two.calls]
    assert sorted(headers.get("x-team", "") for headers in sent) == ["", "blue", "red"]
    assert not any("x-other" in headers for headers in sent)


def test_relayed_header_tells_vectors_apart_too(fleet: Fleet, caller: Client) -> None:
    """What an engine sees may change its vectors, so no two values share one."""
    row = {"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}
    body = json.dumps({"object": "list", "data": [row], "model": "m", "usage": usage(2, 0)})
    answer = Answer([body.encode()], headers={"content-type": "application/json"})
    for fake in (fleet.one, fleet.two):
        fake.script = lambda _: answer

    def cache(team: str) -> str:
        asked = {"model": "stub-model", "input": "Hi."}
        response = caller.http.post("/v1/embeddings", json=asked, headers={"x-team": team})
        assert response.status_code == 200, response.text
        return str(response.headers["x-strata-cache"])

    assert cache("red") == "miss"
    until(lambda: cache("red") == "exact")
    assert cache("blue") == "miss"


def test_relayed_header_is_refused_when_it_is_not_printable(fleet: Fleet, caller: Client) -> None:
    """One clear error that names it, and no replica is blamed."""
    response = caller.http.post(
        "/v1/chat/completions",
        json=caller.body(PROMPT),
        headers={b"x-team": "caf\xe9".encode("latin-1")},
    )
    assert (response.status_code, response.json()["error"]["param"]) == (400, "x-team")
    assert sum(fleet.num_calls) == 0


def test_drained_replica_gets_nothing_when_the_admin_says_so(fleet: Fleet, caller: Client) -> None:
    """In flight goes on, new requests go to the other one, until it is put back."""
    one = fleet.one.base_url
    drained = caller.http.post("/admin/upstreams/pair/drain", json={"replica": one})
    assert [row["state"] for row in drained.json()["replicas"]] == ["drained", "ready"]
    for k in range(4):
        caller.answer(f"Count to {k}.")
    assert fleet.num_calls == [0, 4, 0]
    caller.http.post("/admin/upstreams/pair/undrain", json={"replica": one})
    for k in range(4):
        caller.answer(f"Count down from {k}.")
    assert fleet.num_calls == [2, 6, 0]


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("nobody", {"replica": "http://x"}, 404),
        ("pair", {"replica": "http://x"}, 404),
        ("pair", {}, 400),
        ("pair", {"replica": 3}, 400),
        ("pair", {"replica": "http://x", "more": 1}, 400),
    ],
)
def test_drain_is_refused_when_it_names_no_replica(
    caller: Client, name: str, body: dict[str, Any], status: int
) -> None:
    """One clear error."""
    response = caller.http.post(f"/admin/upstreams/{name}/drain", json=body)
    assert response.status_code == status
    wrong = "replica" if "more" not in body else "more"
    error = response.json()["error"]
    assert error["param"] == ("name" if name != "pair" else wrong)
    assert error["param"] == "name" or wrong in error["message"]


def test_load_is_shown_when_requests_are_in_flight(fleet: Fleet, caller: Client) -> None:
    """Replicas and their requests, in the admin API and in the metrics."""
    gate = Gate()
    fleet.script(*[lambda call: Answer([*streamed(["a"])[:2], gate, *streamed(["a"])[2:]])] * 2)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(caller.answer, PROMPT)
        assert gate.reached.wait(10)
        in_flight = [row["in_flight"] for row in views(caller)["replicas"]]
        metrics = caller.metrics()
        gate.open()
        asked.result()
    assert sorted(in_flight) == [0, 1]
    assert 'strata_upstream_in_flight{replica="' in metrics
    assert [row["in_flight"] for row in views(caller)["replicas"]] == [0, 0]


def test_money_is_counted_when_prices_are_set(fleet: Fleet, caller: Client) -> None:
    """A miss is spent, its repeat is saved."""
    answer = Answer([chunk({"content": "x"}, finish="stop"), usage_chunk(3, 2), DONE])
    fleet.script(one=lambda call: answer, two=lambda call: answer)
    before = caller.http.get("/admin/stats").json()["money"].get("USD", {"spent": 0, "saved": 0})
    caller.seed(PROMPT)
    caller.answer(PROMPT)
    after = caller.http.get("/admin/stats").json()["money"]["USD"]
    assert after["spent"] - before["spent"] == pytest.approx(5)
    assert after["saved"] - before["saved"] == pytest.approx(5)
    assert 'strata_money_saved_total{currency="USD",layer="exact"}' in caller.metrics()
