"""What is kept, for how long, how it looks on the disk, and how it comes back. One gateway."""

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.client import until
from tests.contract.conftest import Relay
from tests.contract.stack import Stack, serving, upstream_toml
from tests.fakes.upstream import FakeUpstream

QUESTION = "What is the capital of France?"
REWORDED = "what is the capital of france"
OLD, NEW, OTHER = (base64.b64encode(bytes([n] * 32)).decode() for n in (1, 2, 3))
KEY = "STRATA_CACHE__ENCRYPTION_KEY"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Stack]:
    with FakeUpstream() as fake:
        settings = {"LOCAL__MODEL": "none", "CACHE__ENCRYPTION_KEY": OLD}
        toml = upstream_toml(fake.base_url)
        folder = tmp_path_factory.mktemp("fresh")
        with serving(folder, serving_models, toml=toml, **settings) as started:
            yield started


@pytest.fixture
def relay(stack: Stack) -> Iterator[Relay]:
    caller = Relay(stack.url)
    yield caller
    caller.close()


def cache(relay: Relay, prompt: str) -> str:
    """Say what the caches would do, without a model call."""
    return str(relay.lookup(relay.body(prompt))["outcome"])


def disk(stack: Stack) -> bytes:
    files = (stack.folder / "data" / "valkey").rglob("*")
    return b"".join(file.read_bytes() for file in files if file.is_file())


def test_nothing_said_is_readable_on_the_disk_when_there_is_a_key(
    stack: Stack, relay: Relay
) -> None:
    """Questions and answers are sealed; another key misses; a rotated one finds them again."""
    answer = relay.seed(QUESTION).json()["choices"][0]["message"]["content"]
    stack.interrupt()
    stored = disk(stack)
    assert stored
    for said in (QUESTION, answer):
        assert said.encode() not in stored
    stack.settings[KEY] = NEW
    stack.start()
    assert cache(relay, QUESTION) == "miss"
    stack.settings[KEY] = f"{NEW},{OLD}"
    stack.restart()
    assert cache(relay, QUESTION) == "exact"
    assert cache(relay, REWORDED) == "semantic"


@pytest.mark.parametrize("key", [OTHER, None], ids=["another", "none"])
def test_policy_is_missed_aloud_and_comes_back_when_the_key_was_another(
    stack: Stack, relay: Relay, key: str | None
) -> None:
    """The log and the doctor name what cannot be read; with the right key it is there again."""

    def ttl() -> Any:
        return relay.http.get("/admin/intents/factual").json()["ttl"]

    assert relay.http.put("/admin/intents/factual", json={"ttl": 4321}).status_code == 200
    own = stack.settings.pop(KEY)
    stack.settings.update({} if key is None else {KEY: key})
    begin = len(stack.log)
    stack.restart()
    assert ttl() != 4321
    (told,) = (line for line in stack.log[begin:].splitlines() if "rows_unreadable" in line)
    assert "intents" in told
    findings = relay.http.get("/admin/doctor").json()["findings"]
    assert any("in intents" in finding["evidence"] for finding in findings)
    stack.settings[KEY] = own
    stack.restart()
    assert ttl() == 4321


def test_hits_by_likeness_come_back_when_the_index_is_gone(stack: Stack, relay: Relay) -> None:
    """A new index is filled from the stored entries without new traffic, and says how far it is."""
    relay.seed(QUESTION)
    stack.interrupt()
    shutil.rmtree(stack.folder / "data" / "qdrant")
    stack.start()
    until(lambda: cache(relay, REWORDED) == "semantic", what="embedded anew")
    until(lambda: "strata_reembedding 0.0" in relay.metrics(), what="done")
    assert "strata_reembedded_entries 0.0" not in relay.metrics()


def test_near_entries_go_when_an_operator_says_so(stack: Stack, relay: Relay) -> None:
    """By likeness within a radius: first looked at, then removed; others stay."""
    relay.seed(QUESTION)
    relay.seed("Why do onions make people cry?")
    query = {"near": REWORDED, "radius": "0.05"}
    url = "/admin/cache/entries"
    seen = relay.http.delete(url, params={**query, "dry_run": "1"}).json()
    assert (seen["deleted"], seen["dry_run"]) == (1, True)
    assert seen["nearest"][0]["text"] == QUESTION
    assert cache(relay, QUESTION) == "exact"
    assert relay.http.delete(url, params=query).json()["deleted"] == 1
    assert cache(relay, QUESTION) == "miss"
    assert cache(relay, "Why do onions make people cry?") == "exact"
    for wrong in ({"near": "x"}, {"radius": "1"}, {"near": "x", "radius": "2"}):
        assert relay.http.delete(url, params=wrong).status_code == 400


def test_private_and_personal_requests_are_kept_as_is_set(stack: Stack, relay: Relay) -> None:
    """A key is never kept; what is said of one order is repeated, never found by likeness."""
    secret = "Is AKIAIOSFODNN7EXAMPLE a valid key?"
    for _ in range(2):
        assert relay.answer(secret).headers["x-strata-cache"] == "miss"
    assert not relay.entries(text="AKIA")
    relay.seed("What is the status of my order number 5521?")
    again = relay.answer("What is the status of my order number 5521?")
    assert (again.headers["x-strata-cache"], again.headers["x-strata-intent"]) == (
        "exact",
        "personal",
    )
    other = relay.answer("what is the status of my order number 5521")
    assert other.headers["x-strata-cache"] == "miss"


def test_stale_answer_is_served_and_made_anew_when_that_is_set(stack: Stack, relay: Relay) -> None:
    """Over its TTL, within the time that is set: at once, told to be stale, then fresh again."""
    stack.settings["STRATA_CACHE__TTL_S"] = "1"
    stack.settings["STRATA_CACHE__STALE_WHILE_REVALIDATE_S"] = "60"
    stack.restart()
    relay.seed("Name a river in Spain.")

    def stale() -> bool:
        headers = relay.answer("Name a river in Spain.").headers
        assert headers["x-strata-cache"] == "exact"
        return headers.get("x-strata-stale") == "1"

    until(stale, what="stale")
    until(lambda: 'strata_refreshes_total{outcome="done"}' in relay.metrics(), what="refreshed")
    assert relay.lookup(relay.body("Name a river in Spain."))["outcome"] == "exact"
