"""An answer on its way while it is invalidated: it is given to who waits, and never kept."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from tests.contract.conftest import Relay
from tests.contract.pair import Pair
from tests.fakes.upstream import Answer, Call, FakeUpstream, Gate, echo, in_two_parts

QUESTION = "What does the widget cost?"
ONLY_CACHED = {"cache-control": "only-if-cached"}
OLD = "first last"


def first_waits(gate: Gate) -> Callable[[Call], Answer]:
    """Let the first call wait at the gate, and the later ones be echoed."""

    def script(call: Call) -> Answer:
        return echo(call) if gate.reached.is_set() else in_two_parts(gate)

    return script


def said(answer: Future[httpx.Response]) -> str:
    return str(answer.result().json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize("by", ["tag", "namespace", "model", "tenant", "all"])
def test_answer_is_not_kept_when_invalidated_on_its_way(
    relay: Relay, upstream: FakeUpstream, by: str
) -> None:
    """Who waits gets the answer; afterwards it is not there, and one asked for anew is kept."""
    gate = Gate()
    upstream.script = first_waits(gate)
    space = relay.http.headers["x-strata-namespace"]
    relay.http.headers["x-strata-tags"] = f"doc-{space}"
    selected = {
        "tag": f"doc-{space}",
        "namespace": space,
        "model": "stub-model",
        "tenant": "public",
        "all": "1",
    }
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(relay.answer, QUESTION)
        assert gate.reached.wait(60)
        removed = relay.http.delete("/admin/cache/entries", params={by: selected[by]})
        assert removed.status_code == 200, removed.text
        gate.open()
        assert said(waiting) == OLD
    assert relay.chat(QUESTION, headers=ONLY_CACHED).status_code == 504
    assert relay.seed(QUESTION).json()["choices"][0]["message"]["content"] != OLD


@pytest.mark.parametrize("how", ["removed", "found wrong"])
def test_renewed_answer_is_not_kept_when_its_entry_goes_meanwhile(
    relay: Relay, upstream: FakeUpstream, how: str
) -> None:
    """An entry that is removed, or found wrong, does not come back by a request of before."""
    relay.seed(QUESTION)
    entry = relay.answer(QUESTION).headers["x-strata-entry"]
    gate = Gate()
    upstream.script = first_waits(gate)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(relay.answer, QUESTION, headers={"cache-control": "no-cache"})
        assert gate.reached.wait(60)
        if how == "removed":
            relay.http.delete("/admin/cache/entries", params={"id": entry}).raise_for_status()
        else:
            verdict = {"entry": entry, "verdict": "wrong"}
            relay.http.post("/admin/feedback", json=verdict).raise_for_status()
        gate.open()
        assert said(waiting) == OLD
    assert relay.chat(QUESTION, headers=ONLY_CACHED).status_code == 504


def test_request_makes_its_own_answer_when_one_on_its_way_was_invalidated(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """Nobody joins a generation from before an invalidation; its answer replaces no newer one."""
    gate = Gate()
    upstream.script = first_waits(gate)
    space = relay.http.headers["x-strata-namespace"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(relay.answer, QUESTION)
        assert gate.reached.wait(60)
        relay.http.delete("/admin/cache/entries", params={"namespace": space})
        newer = relay.seed(QUESTION)
        assert "x-strata-coalesced" not in newer.headers
        gate.open()
        assert said(waiting) == OLD
    kept = relay.answer(QUESTION, headers=ONLY_CACHED).json()
    assert kept["choices"][0]["message"]["content"] == f"ECHO:{QUESTION}"


def test_answer_is_not_kept_when_another_gateway_invalidates(pair: Pair) -> None:
    """Gateways over one Redis know of each other's invalidations."""
    gate = Gate()
    pair.upstream.script = first_waits(gate)
    one, other = pair.clients()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(one.answer, QUESTION)
        assert gate.reached.wait(60)
        assert other.http.delete("/admin/cache/entries", params={"all": 1}).status_code == 200
        gate.open()
        assert said(waiting) == OLD
    for gateway in (one, other):
        assert gateway.chat(QUESTION, headers=ONLY_CACHED).status_code == 504
