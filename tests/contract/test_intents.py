"""O01 as its kind: a threshold changed on one gateway holds on all, at once and after a restart."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.client import Client, until
from tests.contract.pair import Pair

SPREAD_S = 1.0
ASKED = "What is the capital of France?"
REWORDED = "What's France's capital city?"
ROUTE = "/admin/intents/factual"
NUM_WRITERS = 8


@pytest.fixture
def clients(pair: Pair) -> Iterator[list[Client]]:
    """A client of each gateway, in one namespace; the intent is left as it was."""
    clients = pair.clients()
    yield clients
    assert clients[0].http.delete(ROUTE).status_code == 200


def put(client: Client, **policy: Any) -> Any:
    response = client.http.put(ROUTE, json=policy)
    assert response.status_code == 200, response.text
    return response.json()


def shown(client: Client) -> Any:
    return client.http.get(ROUTE).json()


def in_force(client: Client) -> Any:
    """All that is shown but labels: those of earlier requests are learnt when their turn comes."""
    return {name: value for name, value in shown(client).items() if name != "labels"}


def probe(client: Client) -> dict[str, Any]:
    """Dry-run the reworded question as a factual one."""
    return client.lookup(client.body(REWORDED), {"x-strata-intent": "factual"})


def stored(client: Client) -> list[tuple[str, float]]:
    entries = client.entries(namespace=client.http.headers["x-strata-namespace"])
    return [(entry["id"], entry["expires_at"]) for entry in entries]


def seed(clients: list[Client]) -> float:
    """Store answers at one gateway until all find them; return the probe's score."""
    one = clients[0]
    one.seed(ASKED, headers={"x-strata-intent": "factual"})
    for at in range(4):
        one.seed(f"What is fact number {at} about lakes?")
    for client in clients:
        until(lambda client=client: probe(client)["score"], limit_s=5)
    return float(probe(one)["score"])


def test_probe_flips_everywhere_when_the_threshold_crosses_its_score(
    clients: list[Client],
) -> None:
    """To a miss and back, on both gateways, with no restart and every entry where it was."""
    score = seed(clients)
    entries = stored(clients[0])
    for threshold, outcome in [
        (score + (1 - score) / 2, "miss"),
        (score - 0.02, "semantic"),
        (score - 0.02, "semantic"),
        (1.0, "miss"),
        (score, "semantic"),
    ]:
        put(clients[0], threshold=threshold)
        assert probe(clients[0])["outcome"] == outcome, "at once where it was set"
        until(lambda: in_force(clients[1]) == in_force(clients[0]), limit_s=SPREAD_S)
        assert probe(clients[1])["outcome"] == outcome
        found = probe(clients[1])
        assert (found["threshold"], found["score"]) == (pytest.approx(threshold), score)
    assert stored(clients[0]) == entries


def test_live_answer_obeys_when_the_threshold_was_changed(clients: list[Client]) -> None:
    """The next request, not only the dry run; its header tells the threshold compared."""
    score = seed(clients)
    headers = {"x-strata-intent": "factual"}
    put(clients[1], threshold=score)
    served = clients[1].answer(REWORDED, headers=headers)
    assert served.headers["x-strata-cache"] == "semantic"
    put(clients[1], mode="off")
    refused = clients[1].answer(f"{REWORDED} Please.", headers=headers)
    assert refused.headers["x-strata-cache"] == "miss"
    assert clients[1].answer(ASKED, headers=headers).headers["x-strata-cache"] == "exact"


def test_hits_never_grow_when_the_threshold_does(clients: list[Client]) -> None:
    """At 1.0 only the same text is left."""
    seed(clients)
    texts = [ASKED, REWORDED, "what is the capital of france", "Name the capital of France, please"]
    bodies = [clients[0].body(text, temperature=0.5) for text in texts]
    counts = []
    for threshold in (0.0, 0.5, 0.8, 0.95, 1.0):
        put(clients[0], threshold=threshold)
        found = [clients[0].lookup(body, {"x-strata-intent": "factual"}) for body in bodies]
        counts.append(sum(each["outcome"] == "semantic" for each in found))
        for each in found:
            best = max(each["candidates"], key=lambda candidate: candidate["score"], default=None)
            assert best is None or best["score"] == each["score"]
    assert counts == sorted(counts, reverse=True)


def test_one_policy_is_left_whole_when_many_are_put_at_once(clients: list[Client]) -> None:
    """Last writer wins; never a threshold of one with the budget of another."""
    policies = [{"threshold": at / 10, "budget": at / 100} for at in range(1, NUM_WRITERS + 1)]
    with ThreadPoolExecutor(NUM_WRITERS) as pool:
        list(pool.map(lambda at: put(clients[at % 2], **policies[at]), range(NUM_WRITERS)))
    until(lambda: in_force(clients[0]) == in_force(clients[1]), limit_s=SPREAD_S)
    left = shown(clients[0])
    assert {"threshold": left["threshold"], "budget": left["budget"]} in policies
    changes = clients[1].http.get(f"{ROUTE}/history").json()["changes"]
    assert changes[0]["version"] == left["version"]


def test_one_writer_wins_when_both_saw_the_same_version(clients: list[Client]) -> None:
    """Whichever gateway each of them asks."""
    headers = {"if-match": clients[0].http.get(ROUTE).headers["etag"]}
    with ThreadPoolExecutor() as pool:
        answers = pool.map(
            lambda client: client.http.put(ROUTE, json={"threshold": 0.5}, headers=headers),
            clients * 2,
        )
        assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]


def test_policy_is_in_force_when_a_gateway_starts_later(pair: Pair, clients: list[Client]) -> None:
    """A newcomer and one that restarts begin with what was set."""
    put(clients[0], threshold=0.123, budget=0.03)
    newcomer = pair.start()
    try:
        assert shown(pair.client(newcomer, "late"))["threshold"] == 0.123
        newcomer.restart()
        assert shown(pair.client(newcomer, "late")) == shown(clients[0])
    finally:
        newcomer.interrupt()
