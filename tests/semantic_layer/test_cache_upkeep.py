"""What operators do to a cache: inspect, import, invalidate, browse and sweep it."""

import pytest

from semantic_layer.decision import NO_MODEL
from semantic_layer.errors import StoreUnavailable
from semantic_layer.request import CacheControl
from semantic_layer.stores.response_store import Selector
from tests.fakes.house import ANY, House, layer, query
from tests.fakes.verifier import FakeVerifier

SEED = "How do I turn on updates?"
REWORDED = "How can I switch on updates, please?"
OPPOSITE = "How do I turn off updates?"
FAR = "What must I press so that updates come by themselves?"


@pytest.fixture
def house() -> House:
    return House()


async def test_inspection_tells_and_changes_nothing_when_asked(house: House) -> None:
    """A dry run names outcome, candidates and reasons; it counts, times and writes nothing."""
    await house.seed(SEED)
    house.stages.clear()
    for text, outcome in ((SEED, "exact"), (REWORDED, "semantic"), (OPPOSITE, "miss")):
        found = await house.cache.inspect(query(text), ANY)
        assert found.outcome == outcome
        assert (found.entry is not None) == (outcome != "miss")
    assert len((await house.cache.inspect(query(OPPOSITE), ANY)).judgement.candidates) == 1
    assert (await house.cache.inspect(query(SEED, temperature=2), ANY)).outcome == "bypass"
    assert house.stages == []
    assert await house.cache.counts() == {"redis": 1, "qdrant": 1}


async def test_inspection_asks_no_served_model_when_the_verifier_is_one() -> None:
    """The candidate stays open, and says why; a look-up asks."""
    verifier = FakeVerifier({SEED: 0.99})
    verifier.asks_model = True
    house = House(verifier=verifier)
    await house.seed(SEED)
    found = await house.cache.inspect(query(FAR), ANY)
    assert found.outcome == "miss"
    assert found.judgement.candidates[0].reasons[-1].detail == NO_MODEL
    assert verifier.asked == []
    assert layer(await house.ask(FAR)) == "semantic"


async def test_import_serves_like_a_stored_answer_when_inserted(house: House) -> None:
    """An imported answer is found exactly and by likeness; a store that is down is an error."""
    entry_id = await house.cache.insert(query(SEED), ANY, b"x", answer_text="x")
    assert entry_id is not None
    assert layer(await house.ask(SEED)) == "exact"
    assert layer(await house.ask(REWORDED)) == "semantic"
    house.store.down = True
    with pytest.raises(StoreUnavailable):
        await house.cache.insert(query("Who?"), ANY, b"x", answer_text="x")


async def test_invalidation_empties_both_stores_when_selected(house: House) -> None:
    """A selector removes its entries and their points, of its tenant only; a dry run counts."""
    tagged = CacheControl(tags=("doc",))
    await house.seed(SEED, tagged)
    await house.seed(SEED, tagged, tenant="other")
    await house.seed("Who are you?")
    ours = Selector(tenant="t", tag="doc")
    assert await house.cache.invalidate(ours, dry_run=True) == 1
    assert await house.cache.counts() == {"redis": 3, "qdrant": 3}
    assert await house.cache.invalidate(ours) == 1
    assert await house.cache.counts() == {"redis": 2, "qdrant": 2}
    assert layer(await house.ask(REWORDED)) == "miss"
    assert layer(await house.ask(REWORDED, tenant="other")) == "semantic"
    with pytest.raises(ValueError, match="nothing is selected"):
        await house.cache.invalidate(Selector())
    assert await house.cache.invalidate(Selector(everything=True)) == 2
    assert await house.cache.counts() == {"redis": 0, "qdrant": 0}


async def test_browsing_shows_what_was_stored_when_paged(house: House) -> None:
    """Entries carry what an operator looks for."""
    await house.seed(SEED, CacheControl(tags=("a",)))
    page = await house.cache.browse(Selector(everything=True), None, 10)
    (entry,) = page.entries
    assert (entry.text, entry.tags, entry.model) == (SEED, ("a",), "m")
    assert SEED.encode() in entry.request


async def test_sweep_drops_what_expired_when_run(house: House) -> None:
    """Expired points go, live ones stay."""
    await house.seed(SEED, CacheControl(ttl_s=5))
    await house.seed("Who are you?")
    house.clock.now += 6
    await house.cache.sweep()
    assert await house.cache.counts() == {"redis": 1, "qdrant": 1}
