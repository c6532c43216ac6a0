"""Several gateways over one response store: they generate once and know what the others know."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.client import Client, until
from tests.contract.pair import Pair
from tests.fakes.upstream import Answer, Call, Gate, streamed

NUM_CALLERS = 100
SHARED_S = 1.0
QUESTION = "What is the capital of France?"
REWORDED = "What's France's capital city?"
MANY = "How many rooms does the hotel have?"


def content(response: Any) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize("stream", [False, True])
def test_one_generation_serves_all_when_identical_requests_reach_two_gateways(
    pair: Pair, stream: bool
) -> None:
    """A hundred callers at once, half of them at each gateway."""
    gate = Gate()

    def script(call: Call) -> Answer:
        return Answer([*streamed(["one ", "answer"])[:2], gate, *streamed(["one ", "answer"])[2:]])

    pair.upstream.script = script
    clients = pair.clients()

    def ask(at: int) -> tuple[str, str]:
        client = clients[at % 2]
        if stream:
            answer = client.stream(QUESTION)
            assert answer.finish_reasons.count("stop") == 1
            return answer.text, answer.headers.get("x-strata-coalesced", "0")
        response = client.chat(QUESTION)
        return content(response), response.headers.get("x-strata-coalesced", "0")

    with ThreadPoolExecutor(NUM_CALLERS) as pool:
        asked = [pool.submit(ask, at) for at in range(NUM_CALLERS)]
        assert gate.reached.wait(10)
        gate.open()
        answers = [each.result() for each in asked]
    assert {text for text, _ in answers} == {"one answer"}
    assert len(pair.upstream.calls) == 1
    assert sum(coalesced == "0" for _, coalesced in answers) >= 1


def test_entry_is_found_by_likeness_when_another_gateway_stored_it(pair: Pair) -> None:
    """Each searches an index of its own, and learns of the others' entries within a second."""
    one, two = pair.clients()
    one.seed(QUESTION)
    until(lambda: two.lookup(two.body(REWORDED))["outcome"] == "semantic", limit_s=SHARED_S + 4)
    reworded = two.answer(REWORDED)
    assert reworded.headers["x-strata-cache"] == "semantic"
    assert content(reworded) == f"ECHO:{QUESTION}"
    assert two.answer(QUESTION).headers["x-strata-cache"] == "exact"
    assert len(pair.upstream.calls) == 1


def test_entry_is_served_by_nobody_when_one_gateway_invalidates_it(pair: Pair) -> None:
    """Neither as a repeat nor by likeness, at once; its point is dropped where it is met."""
    one, two = pair.clients()
    one.seed(MANY, headers={"x-strata-tags": "hotel"})
    reworded = "How many rooms has the hotel got?"
    until(lambda: _points(two, MANY) == 1)
    removed = one.http.delete("/admin/cache/entries", params={"tag": "hotel"})
    assert removed.json()["deleted"] == 1
    assert two.lookup(two.body(MANY))["outcome"] == "miss"
    assert two.answer(reworded).headers["x-strata-cache"] == "miss"
    assert two.answer(MANY).headers["x-strata-cache"] != "exact"


def _points(client: Client, prompt: str) -> int:
    return len(client.lookup(client.body(f"{prompt} Please."))["candidates"])


def test_another_gateway_takes_over_when_the_generating_one_dies(pair: Pair) -> None:
    """The lease of the dead expires, and who waits for it generates."""
    gate = Gate()
    pair.upstream.script = lambda call: Answer([*streamed(["a"])[:2], gate])
    doomed = pair.start()
    client = pair.client(doomed, "takeover")
    waiting = pair.client(pair.stacks[0], "takeover")
    with ThreadPoolExecutor() as pool:
        lost = pool.submit(client.chat, QUESTION)
        assert gate.reached.wait(10)
        pair.upstream.script = lambda call: Answer(streamed(["taken over"]))
        kept = pool.submit(waiting.chat, QUESTION)
        doomed.kill()
        assert content(kept.result(timeout=30)) == "taken over"
        gate.open()
        assert lost.exception(timeout=30) is not None
    assert len(pair.upstream.calls) == 2


def test_leader_that_gives_up_hands_over_when_others_wait(pair: Pair) -> None:
    """A client that leaves ends its gateway's generation, not the other's request."""
    gate = Gate()
    pair.upstream.script = lambda call: Answer([*streamed(["a"])[:2], gate])
    one, two = pair.clients()
    with ThreadPoolExecutor() as pool, one.opened(QUESTION) as response:
        next(response.iter_lines())
        pair.upstream.script = lambda call: Answer(streamed(["handed over"]))
        waiting = pool.submit(two.chat, QUESTION)
        response.close()
        assert content(waiting.result(timeout=30)) == "handed over"
    gate.open()
    assert len(pair.upstream.calls) == 2
