"""Answers that are withdrawn while they are on their way, over every implementation."""

import pytest

from semantic_layer.stores.response_store import ResponseStore, Selector
from tests.fakes.stores import Clock, make_entry

pytestmark = pytest.mark.asyncio(loop_scope="module")

WITHDRAWALS = {
    "id": Selector(entry_id="e1"),
    "tag": Selector(tag="doc:ä"),
    "namespace": Selector(namespace="n s"),
    "model": Selector(model="m"),
    "tenant": Selector(tenant="public"),
    "all": Selector(everything=True),
    "several": Selector(tag="doc:ä", model="m", namespace="n s", text="x"),
}


@pytest.mark.parametrize("selector", WITHDRAWALS.values(), ids=WITHDRAWALS)
async def test_answer_is_not_kept_when_withdrawn_on_its_way(
    store: ResponseStore, clock: Clock, selector: Selector
) -> None:
    """What was asked for before a withdrawal is not kept; what was asked for after it is."""
    entry = make_entry("e1", clock, tags=("v=2", "doc:ä"), namespace="n s")
    assert await store.put(entry, 60.0)
    await store.withdraw(Selector(tag="another"))
    await store.withdraw(selector)
    clock.now += 1.0
    assert await store.is_withdrawn(entry, 60.0)
    assert await store.delete("public", ["e1"]) == ["e1"]
    assert not await store.put(entry, 60.0)
    assert await store.get("public", "e1") is None
    assert await store.put(entry)
    assert await store.get("public", "e1") == entry


OTHERS = [
    Selector(entry_id="e2"),
    Selector(tag="doc"),
    Selector(namespace=""),
    Selector(model="M"),
    Selector(tenant="other", everything=True),
    Selector(tag="doc:ä", model="another"),
]


async def test_answer_is_kept_when_others_are_withdrawn(store: ResponseStore, clock: Clock) -> None:
    """A withdrawal touches the answers that all its names fit, and no others."""
    entry = make_entry("e1", clock, tags=("doc:ä",), namespace="n s")
    for selector in OTHERS:
        await store.withdraw(selector)
    clock.now += 1.0
    assert not await store.is_withdrawn(entry, 60.0)
    assert await store.put(entry, 60.0)


async def test_entry_stays_when_an_older_answer_of_its_key_was_withdrawn(
    store: ResponseStore, clock: Clock
) -> None:
    """An answer asked for after the withdrawal is not replaced by one from before it."""
    await store.withdraw(Selector(everything=True))
    clock.now += 1.0
    fresh = make_entry("e1", clock, answer=b"fresh")
    assert await store.put(fresh)
    assert not await store.put(make_entry("e1", clock, answer=b"old"), 60.0)
    assert await store.get("public", "e1") == fresh
