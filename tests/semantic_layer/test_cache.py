"""The cache's decisions over memory stores and a fake embedder: what is served, kept, refused."""

import asyncio
from dataclasses import replace

import pytest

from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.calibration.trial import Trial
from semantic_layer.intents.intent_rules import IntentRule
from semantic_layer.outcome import Hit, Miss
from semantic_layer.policy import CachePolicy
from semantic_layer.request import CacheControl
from tests.fakes.house import ANY, House, layer, query

SEED = "How do I turn on updates?"
REWORDED = "How can I switch on updates, please?"
OPPOSITE = "How do I turn off updates?"


@pytest.fixture
def house() -> House:
    return House()


async def test_repeat_is_exact_when_the_request_is_the_same(house: House) -> None:
    """The same request is served from one read, without an embedding, with its age."""
    entry_id = await house.seed(SEED)
    texts = house.embedder.num_texts
    house.clock.now += 7
    outcome = await house.ask(SEED, stream=True)
    assert isinstance(outcome, Hit)
    assert (outcome.layer, outcome.age_s, outcome.entry.entry_id) == ("exact", 7, entry_id)
    assert outcome.entry.answer == f"A({SEED})".encode()
    assert house.embedder.num_texts == texts
    assert house.stages[-1] == "exact"


async def test_rewording_is_semantic_when_nothing_differs(house: House) -> None:
    """A rewording is served, with the numbers behind it, at every stage timed."""
    await house.seed(SEED)
    outcome = await house.ask(REWORDED)
    assert isinstance(outcome, Hit)
    assert outcome.layer == "semantic"
    judgement = outcome.judgement
    assert judgement.score is not None
    assert judgement.threshold is not None
    assert judgement.score >= judgement.threshold
    assert judgement.similarity is not None
    assert house.stages[-4:] == ["exact", "embed", "search", "verify"]


@pytest.mark.parametrize(("seed", "probe"), [(SEED, OPPOSITE), (OPPOSITE, SEED)])
async def test_opposite_misses_with_its_reason_when_a_guard_vetoes(
    house: House, seed: str, probe: str
) -> None:
    """The opposite question misses in both seeding orders, and the trace says why."""
    await house.seed(seed)
    outcome = await house.ask(probe)
    assert isinstance(outcome, Miss)
    (candidate,) = outcome.judgement.candidates
    assert [reason.check for reason in candidate.reasons if reason.verdict == "veto"] == [
        "polarity"
    ]
    assert candidate.score == 0


async def test_next_best_is_served_when_the_best_is_vetoed_expired_or_gone(house: House) -> None:
    """A nearer entry that may not be served never hides one that may."""
    await house.seed(REWORDED)
    gone = await house.seed(SEED + " Thanks", CacheControl(no_cache=True))
    expired = CacheControl(no_cache=True, ttl_s=5)
    await house.seed(SEED + "!", expired)
    for i in range(12):
        await house.seed(OPPOSITE, CacheControl(no_cache=True), temperature=i / 12 + 0.01)
    house.clock.now += 6
    assert gone is not None
    await house.store.delete("t", [gone])
    outcome = await house.ask(SEED)
    assert isinstance(outcome, Hit)
    assert outcome.entry.text == REWORDED


async def test_point_is_removed_on_sight_when_its_entry_is_gone(house: House) -> None:
    """A look-up drops a point without an entry; an inspection leaves it."""
    entry_id = await house.seed(SEED)
    assert entry_id is not None
    await house.store.delete("t", [entry_id])
    assert (await house.cache.inspect(query(REWORDED), ANY)).outcome == "miss"
    assert await house.index.count() == 1
    assert layer(await house.ask(REWORDED)) == "miss"
    assert await house.index.count() == 0


async def test_entry_is_absent_when_its_ttl_is_over(house: House) -> None:
    """TTL: request before intent before default; a hit never prolongs it."""
    policy = CachePolicy(ttl_s=100, intents={"creative": IntentRule(ttl_s=50)})
    house = House(policy=policy)
    poem = "Write a poem about rain"
    await house.seed(SEED)
    await house.seed(poem)
    await house.seed("Who are you?", CacheControl(ttl_s=10))
    house.clock.now += 11
    assert layer(await house.ask("Who are you?")) == "miss"
    assert layer(await house.ask(poem)) == "exact"
    house.clock.now += 40
    assert layer(await house.ask(poem)) == "miss"
    assert layer(await house.ask(SEED)) == "exact"
    house.clock.now += 50
    assert layer(await house.ask(SEED)) == "miss"


async def test_tenants_never_meet_when_they_ask_the_same(house: House) -> None:
    """Neither exact nor semantic hits cross tenants."""
    await house.seed(SEED)
    assert layer(await house.ask(SEED, tenant="other")) == "miss"
    assert layer(await house.ask(REWORDED, tenant="other")) == "miss"


async def test_cache_control_is_obeyed_when_given(house: House) -> None:
    """no-cache looks nothing up but stores; no-store looks up but keeps nothing; both bypass."""
    no_store = CacheControl(no_store=True)
    assert await house.seed(SEED, no_store) is None
    assert layer(await house.ask(SEED)) == "miss"
    await house.seed(SEED)
    assert layer(await house.ask(SEED, no_store)) == "exact"
    fresh = await house.ask(SEED, CacheControl(no_cache=True))
    assert isinstance(fresh, Miss)
    assert fresh.may_store
    assert layer(await house.ask(SEED, CacheControl(no_cache=True, no_store=True))) == "bypass"


async def test_old_entries_are_refused_when_max_age_says_so(house: House) -> None:
    """max-age bounds exact and semantic hits alike."""
    await house.seed(SEED)
    house.clock.now += 60
    for text in (SEED, REWORDED):
        assert layer(await house.ask(text, CacheControl(max_age_s=59))) == "miss"
        assert layer(await house.ask(text, CacheControl(max_age_s=60))) != "miss"


async def test_only_exact_repeats_hit_when_semantic_is_off(house: House) -> None:
    """Switched off by the caller, nothing is found by likeness nor kept for it."""
    off = CacheControl(semantic=False)
    await house.seed(SEED)
    assert layer(await house.ask(REWORDED, off)) == "miss"
    await house.seed("Who are you?", off)
    assert await house.index.count() == 1
    assert layer(await house.ask("Who are you?", off)) == "exact"


async def test_cut_answer_serves_exact_repeats_only_when_stored(house: House) -> None:
    """A cut answer is never found by likeness, also when it replaces a whole one."""
    await house.seed(SEED)
    await house.seed(SEED, CacheControl(no_cache=True), cut=True)
    assert layer(await house.ask(SEED)) == "exact"
    assert layer(await house.ask(REWORDED)) == "miss"
    assert await house.index.count() == 0


async def test_request_is_left_alone_when_it_is_too_hot(house: House) -> None:
    """Above the largest temperature nothing is read, kept or imported."""
    assert layer(await house.ask(SEED, temperature=1.01)) == "bypass"
    assert layer(await house.ask(SEED, temperature=1.0)) == "miss"
    hot = query(SEED, temperature=1.5)
    assert await house.cache.insert(hot, ANY, b"x", answer_text="x") is None


async def test_threshold_and_intent_are_the_callers_when_stricter(house: House) -> None:
    """Threshold 1 admits the same text only; a forced intent brings its own threshold."""
    house = House(thresholds=Thresholds(manual={"strict": 1.0}))
    await house.seed(SEED, temperature=0.5)
    assert layer(await house.ask(REWORDED, CacheControl(threshold=1.0))) == "miss"
    assert layer(await house.ask(REWORDED, CacheControl(intent="strict"))) == "miss"
    assert (
        layer(await house.ask(SEED, CacheControl(intent="strict"), temperature=0.7)) == "semantic"
    )
    assert layer(await house.ask(REWORDED, CacheControl(threshold=0.0))) == "semantic"


async def test_intent_is_served_by_exact_repeats_only_when_it_is_off(house: House) -> None:
    """What is stored meanwhile is found by likeness once it is on again."""
    house.cache.retune(Thresholds(off=frozenset({"general"})), {})
    general = CacheControl(intent="general")
    await house.seed(SEED, general)
    refused = await house.ask(REWORDED, general)
    assert isinstance(refused, Miss)
    assert [reason.check for reason in refused.judgement.reasons] == ["intent"]
    assert layer(await house.ask(SEED, general)) == "exact"
    assert layer(await house.ask(REWORDED, CacheControl(intent="code"))) == "semantic"
    house.cache.retune(Thresholds(), {})
    assert layer(await house.ask(REWORDED, general)) == "semantic"


async def test_entry_is_held_to_its_own_threshold_when_it_has_a_history(house: House) -> None:
    """A stricter one lets another entry be served; the decision tells which was compared."""
    seeded = await house.seed(SEED)
    assert seeded is not None
    house.cache.retune(Thresholds(entries={seeded: 0.9995}), {})
    refused = await house.ask(REWORDED)
    assert isinstance(refused, Miss)
    assert refused.judgement.threshold == 0.9995
    other = await house.seed(
        "How can I turn on updates?", CacheControl(semantic=True, no_cache=True)
    )
    served = await house.ask(REWORDED)
    assert isinstance(served, Hit)
    assert served.entry.entry_id == other
    assert served.judgement.threshold == Thresholds().of("general")
    trial = {"general": Trial("t", 0.0, 0.0)}
    house.cache.retune(Thresholds(entries={seeded: 1.0}, trials=trial), {})
    tried = await house.ask(REWORDED)
    assert isinstance(tried, Hit)
    assert tried.judgement.arm in {"a", "b"}


async def test_time_to_live_is_the_retuned_one_unless_the_request_names_one(house: House) -> None:
    """It comes before the policy's."""
    house.cache.retune(Thresholds(), {"general": 30})
    general = CacheControl(intent="general")
    await house.seed(SEED, general)
    await house.seed("Another one?", replace(general, ttl_s=100))
    house.clock.now += 31
    assert layer(await house.ask(SEED, general)) == "miss"
    assert layer(await house.ask("Another one?", general)) == "exact"


async def test_long_text_is_kept_for_exact_repeats_when_past_the_window(house: House) -> None:
    """A text past the window is never cut: no vector, a reason; exact still works."""
    house.embedder.window_tokens = 40
    prefix = "Keep every reply short. " * 20
    one, other = prefix + "Name one metal.", prefix + "Explain how to boil an egg."
    await house.seed(one)
    assert await house.index.count() == 0
    outcome = await house.ask(other)
    assert isinstance(outcome, Miss)
    assert "window" in [reason.check for reason in outcome.judgement.reasons]
    assert layer(await house.ask(one)) == "exact"


async def test_query_text_decides_when_the_message_carries_pages(house: House) -> None:
    """A RAG prompt hits by its question, within the same context set only."""
    control = CacheControl(query_text="What is the refund period?", context=("doc1",))
    await house.seed("page 1 … What is the refund period?", control)
    reworded = CacheControl(query_text="what is the refund period", context=("doc1",))
    elsewhere = CacheControl(query_text="what is the refund period", context=("doc2",))
    assert layer(await house.ask("page 2", reworded)) == "semantic"
    assert layer(await house.ask("page 2", elsewhere)) == "miss"
    assert layer(await house.ask("page 1 … What is the refund period?", elsewhere)) == "miss"


async def test_lookup_misses_quietly_when_parts_are_down() -> None:
    """Each part that is down makes a miss with a reason, is counted, and spoils nothing else."""
    house = House(policy=CachePolicy(failures=100))
    await house.seed(SEED)
    house.embedder.down = True
    assert layer(await house.ask(REWORDED)) == "miss"
    assert layer(await house.ask(SEED)) == "exact"
    house.embedder.down = False
    house.index.down = True
    outcome = await house.ask(REWORDED)
    assert isinstance(outcome, Miss)
    assert "search" in [reason.check for reason in outcome.judgement.reasons]
    assert await house.seed("Who are you?") is None
    house.index.down = False
    house.store.down = True
    assert layer(await house.ask(SEED)) == "miss"
    assert await house.seed("Who is she?") is None
    assert {"redis", "qdrant", "embedder"} == set(house.failures)
    house.store.down = False
    assert layer(await house.ask(SEED)) == "exact"


async def test_lookup_is_a_miss_in_bounded_time_when_the_store_hangs() -> None:
    """A hanging store costs one deadline per call, then, its breaker open, nothing."""
    house = House(policy=CachePolicy(store_deadline_s=0.01, failures=2, backoff_s=60))
    house.store.hangs = True
    for _ in range(3):
        assert layer(await house.ask(SEED)) == "miss"
    assert [part for part, is_open in house.cache.open_breakers.items() if is_open] == ["redis"]
    states = await house.cache.health()
    assert [part for part, state in states.items() if not state.ok] == ["redis"]
    assert house.store.num_gets == 0


async def test_lookup_can_be_cancelled_when_a_part_is_slow(house: House) -> None:
    """A caller that goes away is not held back, and the cache goes on."""
    house.embedder.hold = asyncio.Event()
    task = asyncio.create_task(house.ask(SEED))
    while "exact" not in house.stages:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    house.embedder.hold = None
    assert layer(await house.ask(SEED)) == "miss"


async def test_exact_layer_works_alone_when_there_is_no_embedder() -> None:
    """Without an embedder only exact repeats hit."""
    house = House(embedder=None)
    await house.seed(SEED)
    assert layer(await house.ask(SEED)) == "exact"
    assert layer(await house.ask(REWORDED)) == "miss"
    await house.cache.close()
