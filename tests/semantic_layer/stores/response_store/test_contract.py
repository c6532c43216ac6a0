"""The contract of `ResponseStore`, over every implementation and real servers."""

import os

import pytest

from semantic_layer.stores.response_store import (
    MemoryResponseStore,
    ResponseStore,
    Selector,
    open_response_store,
)
from tests.fakes.stores import Clock, make_entry

pytestmark = pytest.mark.asyncio(loop_scope="module")

CRAFTED = ["a", "a:b", "a%3Ab", "a\n", "a b", "", "{a}", "a}:e:x{", "ä", "公司", "a:created"]


async def ids(store: ResponseStore, selector: Selector, limit: int = 50) -> list[str]:
    page = await store.select(selector, cursor=None, limit=limit)
    return [entry.entry_id for entry in page.entries]


async def test_entry_comes_back_whole_when_it_was_put(store: ResponseStore, clock: Clock) -> None:
    """Every field survives, whatever script it is written in."""
    entry = make_entry(
        "e1",
        clock,
        text="Größe? 多大？👩‍👩‍👧\u0301",
        answer_text="很大",
        tags=("doc:1", "v=2"),
        intent="factual",
        scope="sc",
        request=b"{}",
        exact_only=True,
        namespace="n s",
    )
    await store.put(entry)
    assert await store.get("public", "e1") == entry


async def test_nothing_comes_back_when_nothing_was_put(store: ResponseStore) -> None:
    """An unknown id is absent, and so is an unknown tenant."""
    assert await store.get("public", "nope") is None
    assert await store.get_many("public", ["a", "b"]) == [None, None]
    assert await store.get_many("public", []) == []


async def test_get_many_keeps_order_when_some_are_absent(
    store: ResponseStore, clock: Clock
) -> None:
    """One result per id, in the order asked, doubles included."""
    a, b = make_entry("a", clock), make_entry("b", clock)
    await store.put(a)
    await store.put(b)
    assert await store.get_many("public", ["b", "x", "a", "b"]) == [b, None, a, b]


async def test_big_answer_comes_back_when_it_does_not_compress(
    store: ResponseStore, clock: Clock
) -> None:
    """Five megabytes of noise survive."""
    entry = make_entry("big", clock, answer=os.urandom(5_000_000))
    await store.put(entry)
    assert await store.get("public", "big") == entry


async def test_entry_expires_at_its_time_when_read_often(
    store: ResponseStore, clock: Clock
) -> None:
    """The TTL is absolute: alive a millisecond before, gone at it, reads or not."""
    await store.put(make_entry("e", clock, ttl_s=60))
    for _ in range(5):
        clock.now += 11.9
        assert await store.get("public", "e") is not None
    clock.now += 0.499
    assert await store.get("public", "e") is not None
    clock.now += 0.001
    assert await store.get("public", "e") is None
    assert await store.get_many("public", ["e"]) == [None]
    assert await ids(store, Selector(everything=True)) == []
    assert await store.count() == 0


async def test_entry_is_not_kept_when_it_has_expired_already(
    store: ResponseStore, clock: Clock
) -> None:
    """A put in the past takes away what it would have replaced."""
    await store.put(make_entry("e", clock))
    await store.put(make_entry("e", clock, ttl_s=-1))
    assert await store.get("public", "e") is None
    assert await store.count() == 0


async def test_newer_entry_wins_when_put_twice(store: ResponseStore, clock: Clock) -> None:
    """A replaced entry has the new lifetime, place and tags, and is counted once."""
    await store.put(make_entry("e", clock, ttl_s=10, tags=("old",)))
    await store.put(make_entry("other", clock, created_at=clock.now + 1))
    second = make_entry("e", clock, created_at=clock.now + 2, ttl_s=100, tags=("new",))
    await store.put(second)
    clock.now += 50
    assert await store.get("public", "e") == second
    assert await ids(store, Selector(everything=True)) == ["e", "other"]
    assert await ids(store, Selector(tag="old")) == []
    assert await ids(store, Selector(tag="new")) == ["e"]
    assert await store.count() == 2


async def test_tenants_never_meet_when_names_are_crafted(
    store: ResponseStore, clock: Clock
) -> None:
    """The same id under names made to collide stays that many entries."""
    entries = {
        (tenant, entry_id): make_entry(
            entry_id, clock, tenant=tenant, answer=f"{tenant}|{entry_id}".encode(), tags=("t",)
        )
        for tenant in CRAFTED
        for entry_id in ("x", "e:x", "b:x")
    }
    for entry in entries.values():
        await store.put(entry)
    for (tenant, entry_id), entry in entries.items():
        assert await store.get(tenant, entry_id) == entry
    for tenant in CRAFTED:
        for selector in (Selector(tenant=tenant), Selector(tenant=tenant, tag="t")):
            page = await store.select(selector, cursor=None, limit=50)
            assert {entry.tenant for entry in page.entries} == {tenant}
            assert len(page.entries) == 3
    assert await store.delete("a", ["x", "e:x", "b:x"]) == ["x", "e:x", "b:x"]
    assert await store.count() == len(entries) - 3


async def test_delete_names_what_existed_when_asked_for_more(
    store: ResponseStore, clock: Clock
) -> None:
    """Only ids that were there are named, and they leave no trace."""
    for entry_id in ("a", "b", "c"):
        await store.put(make_entry(entry_id, clock, tags=("t",)))
    assert await store.delete("public", ["a", "zz", "c"]) == ["a", "c"]
    assert await store.delete("public", ["a"]) == []
    assert await store.delete("public", []) == []
    assert await store.delete("other", ["b"]) == []
    assert await ids(store, Selector(tag="t")) == ["b"]
    assert await store.get("public", "a") is None


@pytest.mark.parametrize("limit", [1, 7, 64, 200, 1000])
async def test_pages_hold_each_entry_once_when_times_are_equal(
    store: ResponseStore, clock: Clock, limit: int
) -> None:
    """Walking the pages meets every entry once, newest first, ties included."""
    num = 20 if limit == 1 else 200
    for number in range(num):
        await store.put(make_entry(f"{number:03}", clock, created_at=clock.now + number // 90))
    seen, cursor = [], None
    while True:
        page = await store.select(Selector(everything=True), cursor=cursor, limit=limit)
        assert len(page.entries) <= limit
        seen += page.entries
        cursor = page.cursor
        if cursor is None:
            break
    assert len({entry.entry_id for entry in seen}) == len(seen) == num
    assert [e.created_at for e in seen] == sorted((e.created_at for e in seen), reverse=True)


async def test_pages_have_no_gap_when_the_store_changes_between_them(
    store: ResponseStore, clock: Clock
) -> None:
    """Deleting what was shown, and adding newer entries, neither skips nor repeats the rest."""
    for number in range(150):
        await store.put(make_entry(f"{number:03}", clock))
    page = await store.select(Selector(tenant="public"), cursor=None, limit=70)
    shown = [entry.entry_id for entry in page.entries]
    await store.delete("public", shown)
    for number in range(5):
        await store.put(make_entry(f"new{number}", clock, created_at=clock.now + 1))
    rest = await store.select(Selector(tenant="public"), cursor=page.cursor, limit=200)
    assert {*shown, *(e.entry_id for e in rest.entries)} == {f"{n:03}" for n in range(150)}
    assert len(rest.entries) == 80
    assert rest.cursor is None


@pytest.mark.parametrize("change", ["deleted", "renewed", "aged"])
async def test_pages_go_on_when_the_last_shown_entry_changed(
    store: ResponseStore, clock: Clock, change: str
) -> None:
    """A cursor stands for a place, not for the entry that was there."""
    for number in range(150):
        await store.put(make_entry(f"{number:03}", clock))
    page = await store.select(Selector(tenant="public"), cursor=None, limit=70)
    last = page.entries[-1].entry_id
    if change == "deleted":
        await store.delete("public", [last])
    else:
        moved_s = 1 if change == "renewed" else -1
        await store.put(make_entry(last, clock, created_at=clock.now + moved_s))
    rest = await store.select(Selector(tenant="public"), cursor=page.cursor, limit=200)
    assert {e.entry_id for e in rest.entries} - {last} == {f"{n:03}" for n in range(80)}
    assert len(rest.entries) == (81 if change == "aged" else 80)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (Selector(), set()),
        (Selector(everything=True), {"1", "2", "3", "4"}),
        (Selector(tenant="t1"), {"1", "2", "3"}),
        (Selector(tenant="t1", everything=True), {"1", "2", "3"}),
        (Selector(namespace="n"), {"2"}),
        (Selector(model="m2"), {"3", "4"}),
        (Selector(intent="code"), {"1"}),
        (Selector(tag="doc:1"), {"1", "2", "4"}),
        (Selector(tenant="t2", tag="doc:1"), {"4"}),
        (Selector(text="PARIS"), {"1", "3"}),
        (Selector(entry_id="4"), {"4"}),
        (Selector(tenant="t1", entry_id="4"), set()),
        (Selector(model="m2", tag="doc:1"), {"4"}),
    ],
)
async def test_select_finds_exactly_what_is_meant(
    store: ResponseStore, clock: Clock, selector: Selector, expected: set[str]
) -> None:
    """All given fields must match; an empty selector selects nothing."""
    tagged = {"tags": ("doc:1", "x")}
    await store.put(make_entry("1", clock, tenant="t1", intent="code", text="In Paris?", **tagged))
    await store.put(make_entry("2", clock, tenant="t1", namespace="n", **tagged))
    await store.put(make_entry("3", clock, tenant="t1", model="m2", answer_text="paris"))
    await store.put(make_entry("4", clock, tenant="t2", model="m2", **tagged))
    assert set(await ids(store, selector)) == expected


@pytest.mark.parametrize("cursor", ["", "?", "e30=", "WzEsMl0=", "ü"])
async def test_select_refuses_when_the_cursor_is_not_ours(
    store: ResponseStore, cursor: str
) -> None:
    """A malformed cursor is the caller's mistake, said as such."""
    with pytest.raises(ValueError, match="cursor"):
        await store.select(Selector(everything=True), cursor=cursor, limit=5)


async def test_sweep_leaves_the_living_when_others_expired(
    store: ResponseStore, clock: Clock
) -> None:
    """Expired entries are dropped and counted once; the rest stays findable."""
    for number in range(30):
        ttl_s = 10 if number % 3 else 1000
        await store.put(make_entry(f"{number}", clock, ttl_s=ttl_s, tags=("t", f"t{number}")))
    clock.now += 10
    assert await store.sweep(clock.now) == 20
    assert await store.sweep(clock.now) == 0
    assert await store.count() == 10
    assert len(await ids(store, Selector(tag="t"))) == 10


async def test_ping_answers_when_the_store_is_up(store: ResponseStore) -> None:
    """A store that is up says so by returning."""
    await store.ping()


@pytest.mark.parametrize("url", ["", "embedded", "http://localhost", "redis:localhost"])
async def test_opening_refuses_when_the_url_names_no_store(url: str) -> None:
    """The message lists what would be understood."""
    with pytest.raises(ValueError, match="memory"):
        open_response_store(url)


async def test_memory_forgets_the_least_used_when_full() -> None:
    """A read keeps an entry; what was not touched longest goes."""
    clock = Clock()
    store = MemoryResponseStore(max_entries=3, clock=clock)
    for entry_id in ("a", "b", "c"):
        await store.put(make_entry(entry_id, clock))
    await store.get("public", "a")
    await store.put(make_entry("d", clock))
    assert sorted(await ids(store, Selector(everything=True))) == ["a", "c", "d"]
