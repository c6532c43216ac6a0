"""Records: one contract, in memory and in a real Valkey."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from semantic_layer import MemoryRecords, Records, Valkey, open_records

pytestmark = pytest.mark.asyncio(loop_scope="module")
LONG = 60.0


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def valkey(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Valkey]:
    server = await Valkey.start(tmp_path_factory.mktemp("records"), max_memory_bytes=8 << 20)
    yield server
    await server.stop()


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["memory", "redis"])
async def records(request: pytest.FixtureRequest, valkey: Valkey) -> AsyncIterator[Records]:
    if request.param == "memory":
        yield MemoryRecords()
        return
    opened = open_records(valkey.url, connect_timeout_s=2, command_timeout_s=2)
    yield opened
    await opened.close()


async def test_values_come_back_in_order_when_some_are_missing(records: Records) -> None:
    """One call asks for many; what is not there is None."""
    await records.put("acme", {"a": b"1", "b": b"\x00\xff"}, LONG)
    assert await records.get("acme", ["b", "x", "a"]) == [b"\x00\xff", None, b"1"]
    assert await records.get("acme", []) == []
    await records.put("acme", {"a": b"2"}, LONG)
    assert await records.get("acme", ["a"], renew_s=LONG) == [b"2"]


@pytest.mark.parametrize(
    ("mine", "theirs"), [(("a", "b:r:c"), ("a:r:b", "c")), (("t", "x"), ("T", "x"))]
)
async def test_tenants_are_apart_when_their_names_look_alike(
    records: Records, mine: tuple[str, str], theirs: tuple[str, str]
) -> None:
    """F01: no name of one tenant reaches another's record."""
    await records.put(mine[0], {mine[1]: b"mine"}, LONG)
    assert await records.get(theirs[0], [theirs[1]]) == [None]
    assert not await records.delete(*theirs)
    assert await records.get(mine[0], [mine[1]]) == [b"mine"]


async def test_record_is_gone_when_it_is_deleted(records: Records) -> None:
    """Deleting tells whether there was one."""
    await records.put("acme", {"gone": b"1"}, LONG)
    assert await records.delete("acme", "gone")
    assert not await records.delete("acme", "gone")
    assert await records.get("acme", ["gone"], renew_s=LONG) == [None]


async def test_record_is_gone_when_its_time_is_over_unless_renewed() -> None:
    """A read with a new life keeps it; a plain read does not."""
    now = 0.0
    records = MemoryRecords(clock=lambda: now)
    await records.put("acme", {"old": b"1", "used": b"2"}, 10)
    now = 9.0
    assert await records.get("acme", ["used"], renew_s=10) == [b"2"]
    now = 11.0
    assert await records.get("acme", ["old", "used"]) == [None, b"2"]


async def test_every_key_has_a_life_in_redis(valkey: Valkey) -> None:
    """A new life reaches the server; it never keeps a record for ever."""
    opened = open_records(valkey.url, connect_timeout_s=2, command_timeout_s=2)
    await opened.put("acme", {"k": b"1"}, 1000)
    await opened.get("acme", ["k"], renew_s=5000)
    client = opened._connection.client  # type: ignore[attr-defined]
    assert 4_000_000 < await client.pttl("strata:{acme}:r:k") <= 5_000_000
    await opened.close()


async def test_records_that_end_first_make_room_when_the_server_is_full(valkey: Valkey) -> None:
    """A full server keeps the newest records rather than none."""
    opened = open_records(valkey.url, connect_timeout_s=2, command_timeout_s=2)
    value = os.urandom(100_000)
    for at in range(150):
        await opened.put("full", {f"n{at}": value}, 1000 + at)
    assert await opened.get("full", ["n0", "n149"]) == [None, value]
    await opened.close()
