"""Journals: one contract, in memory and in a real Valkey."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from semantic_layer import Follower, Journal, MemoryJournal, Row, Valkey, open_journal

pytestmark = pytest.mark.asyncio(loop_scope="module")
MANY = 1000


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def valkey(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Valkey]:
    server = await Valkey.start(tmp_path_factory.mktemp("journal"), max_memory_bytes=8 << 20)
    yield server
    await server.stop()


@pytest_asyncio.fixture(loop_scope="module", params=["memory", "redis"])
async def journal(request: pytest.FixtureRequest, valkey: Valkey) -> AsyncIterator[Journal]:
    url = "memory" if request.param == "memory" else valkey.url
    opened = open_journal(url, connect_timeout_s=2, command_timeout_s=2)
    if request.param == "redis":
        await opened._client.flushall()  # type: ignore[attr-defined]
    yield opened
    await opened.close()


def ids(rows: list[Row]) -> list[str]:
    return [row.row_id for row in rows]


async def test_rows_come_in_the_order_of_their_last_write(journal: Journal) -> None:
    """Both ways, in pages; a row written again is new again."""
    assert await journal.put("j", {"a": b"1", "b": b"2", "c": b"\x00\xff"}, most=MANY) == 3
    assert await journal.put("j", {"a": b"new"}, most=MANY) == 4
    rows = await journal.after("j", 0, MANY)
    assert [(row.row_id, row.seq, row.data) for row in rows] == [
        ("b", 2, b"2"),
        ("c", 3, b"\x00\xff"),
        ("a", 4, b"new"),
    ]
    assert ids(await journal.after("j", 2, 1)) == ["c"]
    assert ids(await journal.before("j", None, 2)) == ["a", "c"]
    assert ids(await journal.before("j", 3, MANY)) == ["b"]
    assert await journal.after("unknown", 0, MANY) == []


async def test_rows_are_found_by_id_when_some_are_missing(journal: Journal) -> None:
    """In the order asked."""
    await journal.put("j", {"a": b"1", "b": b"2"}, most=MANY)
    found = await journal.get("j", ["b", "x", "a"])
    assert [row and row.data for row in found] == [b"2", None, b"1"]
    assert await journal.get("j", []) == []


async def test_oldest_rows_go_when_a_journal_is_full(journal: Journal) -> None:
    """What was written last stays, and keeps its number."""
    for at in range(6):
        await journal.put("j", {f"r{at}": b"x"}, most=4)
    await journal.put("j", {"r3": b"again"}, most=4)
    assert ids(await journal.after("j", 0, MANY)) == ["r2", "r4", "r5", "r3"]
    assert (await journal.heads())["j"] == 7


async def test_swap_writes_when_the_row_is_as_expected(journal: Journal) -> None:
    """Of two writers who saw the same row one wins; 0 expects none."""
    first = await journal.swap("j", "a", b"1", expected=0)
    assert first == 1
    assert await journal.swap("j", "a", b"2", expected=0) is None
    both = await asyncio.gather(
        journal.swap("j", "a", b"one", expected=first),
        journal.swap("j", "a", b"two", expected=first),
    )
    assert sorted(both, key=bool) == [None, 2]
    assert [row and row.data for row in await journal.get("j", ["a"])] in ([b"one"], [b"two"])


async def test_journals_are_apart_when_their_names_look_alike(journal: Journal) -> None:
    """A name never reaches into another journal."""
    await journal.put("a:b", {"x": b"1"}, most=MANY)
    await journal.put("a", {"b:x": b"2"}, most=MANY)
    assert await journal.heads() == {"a:b": 1, "a": 1}
    assert ids(await journal.after("a", 0, MANY)) == ["b:x"]


async def test_longest_journal_gives_way_when_the_server_is_full(valkey: Valkey) -> None:
    """A small row is still written; the oldest rows of the longest journal went."""
    opened = open_journal(valkey.url, connect_timeout_s=2, command_timeout_s=5)
    for at in range(0, 4000, 100):
        rows = {f"r{at + i}": b"x" * 4000 for i in range(100)}
        await opened.put("long", rows, most=100_000)
    await opened.put("intents", {"code": b"policy"}, most=MANY)
    kept = await opened.get("long", ["r0", "r3999"])
    assert [row is None for row in kept] == [True, False]
    assert [row and row.data for row in await opened.get("intents", ["code"])] == [b"policy"]
    await opened.close()


class Notes:
    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def take(self, rows: list[Row]) -> None:
        self.rows |= {row.row_id: row.data for row in rows}

    def forget(self) -> None:
        self.rows.clear()


async def test_readers_hear_of_what_others_write(journal: Journal) -> None:
    """Each of its own journal or kind of journals, also of more rows than are read at once."""
    policies, labels = Notes(), Notes()
    follower = Follower(journal, {"intents": policies, "labels:": labels})  # type: ignore[dict-item]
    await follower.catch_up()
    await journal.put("intents", {"code": b"1"}, most=MANY)
    await journal.put("labels:code", {f"{at}": b"x" for at in range(1500)}, most=5000)
    await journal.put("labels:factual", {"y": b"2"}, most=MANY)
    await journal.put("others", {"z": b"3"}, most=MANY)
    await follower.catch_up()
    assert policies.rows == {"code": b"1"}
    assert len(labels.rows) == 1501


async def test_readers_forget_when_the_store_lost_everything() -> None:
    """They hold what the store holds now, no more."""
    journal, notes = MemoryJournal(), Notes()
    follower = Follower(journal, {"j": notes})  # type: ignore[dict-item]
    await journal.put("j", {"a": b"1", "b": b"2"}, most=MANY)
    await follower.catch_up()
    await journal.close()
    await journal.put("j", {"c": b"3"}, most=MANY)
    await follower.catch_up()
    assert notes.rows == {"c": b"3"}
