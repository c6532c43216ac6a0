"""What `x-strata-cache` says where a request is kept in part, or not at all: the README's table."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.contract.conftest import Relay
from tests.fakes.upstream import FakeUpstream

NO_CACHE, NO_STORE = {"cache-control": "no-cache"}, {"cache-control": "no-store"}
BOTH = {"cache-control": "no-cache, no-store"}
ONLY = {"cache-control": "only-if-cached"}


@dataclass(frozen=True)
class Asked:
    """A request and what it is called the first time, again, and when it says no more."""

    text: Any
    first: str
    again: str
    reason: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    status: int = 200


CASES = {
    "plain": Asked("How do I oil a chain?", "miss", "exact"),
    "no-store": Asked("How do I mend a tyre?", "miss", "miss", None, NO_STORE),
    "no-cache": Asked("How do I true a wheel?", "miss", "miss", None, NO_CACHE),
    "both": Asked("How do I grease a hub?", "bypass", "bypass", "cache-control", BOTH),
    "hot": Asked(
        "Name a bicycle.", "bypass", "bypass", "temperature", fields={"temperature": 1.5}
    ),
    "semantic off": Asked(
        "How do I adjust a brake?", "miss", "exact", "eligible", {"x-strata-semantic": "off"}
    ),
    "no text": Asked(
        [{"role": "user", "content": "Ring."}, {"role": "assistant", "content": "Ri"}],
        "miss", "exact", "eligible",
    ),
    "long": Asked(f"{'word ' * 600}Name a tool.", "miss", "exact", "window"),
    "personal": Asked("What is the status of my order?", "miss", "exact", "intent"),
    "time-sensitive": Asked("What is the weather in Oslo today?", "miss", "exact"),
    "clock": Asked("What time is it?", "bypass", "bypass", "intent"),
    "private": Asked("Is AKIAIOSFODNN7EXAMPLE a valid key?", "miss", "miss"),
    "only-if-cached": Asked("Who made this bell?", "miss", "miss", None, ONLY, status=504),
    "only-if-cached, hot": Asked(
        "Who made this lamp?", "bypass", "bypass", "temperature", ONLY, {"temperature": 1.5}, 504
    ),
}  # fmt: skip


@pytest.mark.parametrize("asked", CASES.values(), ids=CASES.keys())
def test_outcome_is_miss_when_the_caches_took_part_and_bypass_when_not(
    relay: Relay, upstream: FakeUpstream, settled: Callable[[], None], asked: Asked
) -> None:
    """Field case S09: what may only be repeated is missed, then exact; a bypass leaves nothing."""
    for outcome in (asked.first, asked.again):
        dry = relay.lookup(relay.body(asked.text, **asked.fields), asked.headers)
        response = relay.chat(asked.text, headers=asked.headers, **asked.fields)
        assert response.status_code == asked.status, response.text
        assert response.headers["x-strata-cache"] == outcome
        if outcome != "exact" and "cache-control" not in asked.headers:
            assert dry["outcome"] == outcome
            skipped = {r["check"] for r in dry["reasons"] if r["verdict"] == "skip"}
            assert asked.reason is None or asked.reason in skipped
        settled()
    is_kept = asked.again == "exact" or asked.headers.get("cache-control") == "no-cache"
    namespace = relay.http.headers["x-strata-namespace"]
    assert bool(relay.entries(namespace=namespace)) == is_kept


@pytest.fixture
def settled(relay: Relay) -> Callable[[], None]:
    """Wait until what was asked so far is stored, by storing one thing more elsewhere."""
    elsewhere = {"x-strata-namespace": relay.http.headers["x-strata-namespace"] + "-elsewhere"}
    asked = iter(range(10))

    def wait() -> None:
        relay.seed(f"What is letter {next(asked)} of the alphabet?", headers=elsewhere)

    return wait
