"""How long answers live, and what goes: stale ones, near ones, private ones, the least used."""

from typing import Any

import pytest

from semantic_layer.intents.intent_rules import IntentRule
from semantic_layer.outcome import Hit, Miss
from semantic_layer.policy import CachePolicy
from semantic_layer.request import CacheControl
from semantic_layer.stores.response_store import Selector
from tests.fakes.house import House, layer, query

SEED = "How do I turn on updates?"
REWORDED = "How can I switch on updates, please?"


def house_of(**policy: Any) -> tuple[House, list[tuple[str, int]], list[str]]:
    removed: list[tuple[str, int]] = []
    private: list[str] = []
    house = House(
        policy=CachePolicy(**policy),
        on_removed=lambda why, number: removed.append((why, number)),
        on_private=private.append,
    )
    return house, removed, private


async def test_stale_answer_serves_exact_repeats_only_while_it_may() -> None:
    """Past its TTL an answer is told to be stale and is found by likeness no more; then it goes."""
    house, _, _ = house_of(ttl_s=60, stale_s=30)
    await house.seed(SEED)
    assert layer(await house.ask(REWORDED)) == "semantic"
    house.clock.now += 70
    stale = await house.ask(SEED)
    assert isinstance(stale, Hit)
    assert (stale.age_s, stale.stale_s) == (70, 10)
    assert layer(await house.ask(REWORDED)) == "miss"
    assert layer(await house.ask(SEED, CacheControl(max_age_s=60))) == "miss"
    missed = await house.ask(SEED, CacheControl(no_cache=True))
    assert isinstance(missed, Miss)
    assert await house.cache.stored(query(SEED), CacheControl(), missed.key) is None
    house.clock.now += 20
    assert layer(await house.ask(SEED)) == "miss"


async def test_answer_is_never_stale_when_its_time_was_named() -> None:
    """A TTL that is asked for, an intent's that changes fast, a tenant's limit: all are kept to."""
    rule = IntentRule(ttl_s=60, may_be_stale=False)
    house, _, _ = house_of(ttl_s=60, stale_s=30, intents={"code": rule})
    await house.seed(SEED, CacheControl(ttl_s=60))
    await house.seed("Who are you?", CacheControl(intent="code"))
    await house.seed("What is it?", CacheControl(max_ttl_s=60))
    await house.seed("Where is it?", CacheControl(max_ttl_s=70))
    house.clock.now += 65
    for text in (SEED, "Who are you?", "What is it?"):
        assert layer(await house.ask(text)) == "miss"
    assert layer(await house.ask("Where is it?")) == "exact"
    house.clock.now += 6
    assert layer(await house.ask("Where is it?")) == "miss"


async def test_answer_may_still_be_stale_when_its_intent_got_another_time() -> None:
    """A time set while it runs stands for the policy's, not for one that the request names."""
    house, _, _ = house_of(ttl_s=60, stale_s=30)
    house.cache.retune(house.cache.thresholds, {"code": 20})
    await house.seed(SEED, CacheControl(intent="code"))
    house.clock.now += 25
    stale = await house.ask(SEED)
    assert isinstance(stale, Hit)
    assert stale.stale_s == 5
    house.clock.now += 30
    assert layer(await house.ask(SEED)) == "miss"


@pytest.mark.parametrize(("private", "again"), [("skip", "miss"), ("store", "semantic")])
async def test_private_request_is_kept_only_when_that_is_set(private: Any, again: str) -> None:
    """By default nothing that holds a secret is stored; what was found is counted."""
    house, _, found = house_of(private=private)
    secret = "How do I turn on updates? My key is AKIAIOSFODNN7EXAMPLE"
    await house.seed(secret)
    assert layer(await house.ask(secret.replace("turn", "switch"))) in (again, "miss")
    assert await house.store.count() == (private == "store")
    assert found == ([] if private == "store" else ["aws access key"])
    imported = await house.cache.insert(query(secret), CacheControl(), b"x", answer_text="x")
    assert (imported is None) == (private == "skip")


async def test_private_request_serves_exact_repeats_only_when_it_is_sealed() -> None:
    """Its vector, which can be read back into words, is not stored."""
    house, _, found = house_of(private="encrypt")
    await house.seed("Mail the invoice to bob@example.com")
    assert layer(await house.ask("Mail the invoice to bob@example.com")) == "exact"
    assert await house.index.count() == 0
    assert found == ["e-mail address"]


async def test_near_entries_go_when_their_text_is_like_the_named_one() -> None:
    """A dry run lists them, nearest first; the selector narrows them; the rest stays."""
    house, removed, _ = house_of()
    for text in (SEED, REWORDED, "Who wrote Faust?"):
        await house.seed(text, CacheControl(no_cache=True))
    await house.seed(SEED, tenant="other")
    everything = Selector(everything=True)
    by_text = {n.entry.text: n for n in await house.cache.near(SEED, 1, everything, dry_run=True)}
    radius = 1.0001 - by_text[REWORDED].similarity
    listed = await house.cache.near(SEED, radius, everything, dry_run=True)
    assert [near.entry.text for near in listed] == [SEED, SEED, REWORDED]
    assert await house.store.count() == 4
    mine = Selector(tenant="t", everything=True)
    assert len(await house.cache.near(SEED, radius, mine, dry_run=False)) == 2
    assert removed == [("asked", 2)]
    assert layer(await house.ask(SEED)) == "miss"
    assert layer(await house.ask(SEED, tenant="other")) == "exact"
    assert layer(await house.ask("Who wrote Faust?")) == "exact"
    assert await house.index.count() == 2


async def test_least_used_entry_goes_when_there_are_too_many() -> None:
    """The number of entries is held after every write, in both stores, and counted."""
    house, removed, _ = house_of(max_entries=3)
    texts = [f"{word} is what?" for word in ("one", "two", "three", "four")]
    for text in texts[:3]:
        await house.seed(text, CacheControl(no_cache=True))
    assert layer(await house.ask(texts[0])) == "exact"
    await house.seed(texts[3], CacheControl(no_cache=True))
    assert [layer(await house.ask(text)) for text in texts] == ["exact", "miss", "exact", "exact"]
    assert (await house.store.count(), await house.index.count()) == (3, 3)
    assert removed == [("size", 1)]


async def test_hits_by_likeness_come_back_when_the_index_is_new() -> None:
    """Without new traffic, each entry embedded once; what may not be found by likeness is not."""
    house, _, _ = house_of()
    await house.seed(SEED)
    await house.seed("What is it?", cut=True)
    await house.seed("Who are you?", tenant="other")
    await house.index.delete("t", [e.entry_id for e in await entries(house)])
    texts = house.embedder.num_texts
    await house.cache.reembed()
    assert house.cache.reembedding.progress.num_embedded == 1
    assert house.embedder.num_texts == texts + 1
    assert layer(await house.ask(REWORDED)) == "semantic"
    assert await house.index.count() == 2


async def test_walk_goes_on_when_the_embedder_was_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken walk begins again and embeds only what is missing still."""
    house, _, _ = house_of(failures=1000)
    for text in (SEED, "Who are you?"):
        await house.seed(text)
    await house.index.delete("t", [e.entry_id for e in await entries(house)])
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)
        house.embedder.down = False

    monkeypatch.setattr("semantic_layer.reembedding.asyncio.sleep", nap)
    house.embedder.down = True
    await house.cache.reembed()
    assert naps
    assert await house.index.count() == 2
    assert house.cache.reembedding.progress.is_done


async def entries(house: House) -> list[Any]:
    page = await house.cache.browse(Selector(everything=True), None, 100)
    return list(page.entries)
