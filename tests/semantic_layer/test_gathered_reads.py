"""Reads of one moment share a round trip, and nobody gets another's entry."""

import asyncio
from collections.abc import Sequence

from semantic_layer import Entry, StoreUnavailable
from semantic_layer.gathered_reads import MOST_AT_ONCE, PATIENCE_S, GatheredReads
from tests.semantic_layer.entries import entry_of


class Store:
    """Holds an entry for every id but ``none``; remembers what was read together."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, list[str], int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: BaseException | None = None

    async def read(
        self, tenant: str, entry_ids: Sequence[str], num_callers: int
    ) -> list[Entry | None]:
        self.reads.append((tenant, list(entry_ids), num_callers))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return [None if i == "none" else entry_of(f"{tenant}/{i}", i) for i in entry_ids]


async def test_each_gets_its_own_when_many_read_at_once() -> None:
    """One round trip for each tenant, one id for those who want the same."""
    store = Store()
    reads = GatheredReads(store.read)
    asked = [("a", "1"), ("b", "1"), ("a", "none"), ("a", "1"), ("b", "2")]
    found = await asyncio.gather(*(reads.get(*one) for one in asked))
    assert [entry and entry.text for entry in found] == ["a/1", "b/1", None, "a/1", "b/2"]
    assert store.reads == [("a", ["1", "none"], 3), ("b", ["1", "2"], 2)]


async def test_round_trips_are_bounded_when_a_crowd_reads() -> None:
    """No round trip carries more ids than the limit."""
    store = Store()
    reads = GatheredReads(store.read)
    names = [str(at) for at in range(2 * MOST_AT_ONCE + 1)]
    found = await asyncio.gather(*(reads.get("a", name) for name in names))
    assert [entry.entry_id for entry in found if entry] == names
    assert [len(ids) for _, ids, _ in store.reads] == [MOST_AT_ONCE, MOST_AT_ONCE, 1]


async def test_later_readers_do_not_wait_when_a_read_hangs() -> None:
    """Who comes while a round trip is under way starts the next after a moment."""
    store = Store()
    reads = GatheredReads(store.read)
    store.gate.clear()
    first = asyncio.create_task(reads.get("a", "1"))
    while not store.reads:
        await asyncio.sleep(0)
    second = asyncio.create_task(reads.get("a", "2"))
    while len(store.reads) < 2:
        await asyncio.sleep(PATIENCE_S)
    store.gate.set()
    entries = await asyncio.gather(first, second)
    assert [entry.entry_id for entry in entries if entry] == ["1", "2"]


async def test_later_readers_share_a_round_trip_when_one_is_under_way() -> None:
    """Who comes meanwhile is read together, as soon as that one has ended, well or badly."""
    for error in (None, StoreUnavailable("down")):
        store = Store()
        reads = GatheredReads(store.read, patience_s=600)
        store.gate.clear()
        tasks = [asyncio.create_task(reads.get("a", "1"))]
        while not store.reads:
            await asyncio.sleep(0)
        store.error = error
        for name in "234":
            tasks.append(asyncio.create_task(reads.get("a", name)))
            await asyncio.sleep(0)
        store.gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [ids for _, ids, _ in store.reads] == [["1"], ["2", "3", "4"]]
        assert all(isinstance(one, StoreUnavailable if error else Entry) for one in results)


async def test_others_are_served_when_one_reader_leaves() -> None:
    """A cancelled reader takes nobody's entry along."""
    store = Store()
    reads = GatheredReads(store.read)
    store.gate.clear()
    tasks = [asyncio.create_task(reads.get("a", "1")) for _ in range(3)]
    while not store.reads:
        await asyncio.sleep(0)
    tasks[0].cancel()
    store.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert [one.entry_id for one in results[1:] if isinstance(one, Entry)] == ["1", "1"]


async def test_all_are_told_when_the_store_is_down() -> None:
    """Each reader gets an error of its own; the next round trip starts afresh."""
    store = Store()
    reads = GatheredReads(store.read)
    store.error = StoreUnavailable("down")
    results = await asyncio.gather(*(reads.get("a", i) for i in "123"), return_exceptions=True)
    assert [str(error) for error in results] == ["down"] * 3
    assert len(set(map(id, results))) == 3
    store.error = None
    assert (await reads.get("a", "1")) is not None
