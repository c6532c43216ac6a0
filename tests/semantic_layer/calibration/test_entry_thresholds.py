"""Entries that are held to a threshold of their own."""

import pytest

from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.decision import Judge
from semantic_layer.entry import Entry
from semantic_layer.models.scorer import BUNDLED, Scorer
from semantic_layer.resources import load_json
from semantic_layer.weighing import Found
from tests.fakes.house import House, layer

ASKED = "How do I bake bread?"
SAID_AGAIN = "how do i bake bread"
SCORER = Scorer.of(load_json(BUNDLED))


def entry(text: str, entry_id: str) -> Entry:
    return Entry(
        entry_id=entry_id, tenant="t", namespace="", model="m", model_fingerprint="f", answer=b"",
        created_at=0, expires_at=1, text=text,
    )  # fmt: skip


async def test_next_entry_is_served_when_the_best_is_held_to_more() -> None:
    """A history makes one entry strict, it hides no other."""
    found = [
        Found(0.99, entry("How do I bake bread", "strict"), threshold=1.01),
        Found(0.97, entry("how can I bake bread?", "other")),
    ]
    decision = await Judge(SCORER).decide("how do I bake bread??", 0.8, found)
    assert decision.entry is None or decision.entry.entry_id == "other"
    free = await Judge(SCORER).decide("how do I bake bread??", 0.8, found[:1])
    assert free.entry is None


@pytest.mark.parametrize(("own", "served"), [(1.1, "miss"), (0.2, "semantic")])
async def test_entry_with_a_history_is_served_at_its_own_threshold(own: float, served: str) -> None:
    """Stricter or looser than its intent's, and only that entry."""
    house = House(scorer=SCORER)
    entry_id = await house.seed(ASKED)
    assert entry_id is not None
    strict = dict.fromkeys(house.cache.thresholds.priors, 1.05) if own < 1 else None
    house.cache.thresholds = Thresholds(
        priors=strict or house.cache.thresholds.priors, entries={entry_id: own}
    )
    assert layer(await house.ask(f"{SAID_AGAIN}, please")) == served
    house.cache.thresholds = Thresholds(
        priors=strict or house.cache.thresholds.priors, entries={"another": own}
    )
    assert layer(await house.ask(f"{SAID_AGAIN}, please")) != served
