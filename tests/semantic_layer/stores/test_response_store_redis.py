"""What only the Redis store can get wrong: wires, keys, TTLs, a server that goes and comes."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from semantic_layer.entry import Entry
from semantic_layer.errors import EntryCorrupt, StoreUnavailable
from semantic_layer.stores.response_store import Selector
from semantic_layer.stores.response_store.codec import EntryCodec
from semantic_layer.stores.response_store.keys import Keys, member_name, parse_member
from semantic_layer.stores.response_store.redis import RedisResponseStore
from semantic_layer.stores.valkey import Valkey
from tests.fakes.stores import Clock, SlowWire, make_entry

NUM_PROMPTS = 40


@pytest_asyncio.fixture
async def valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    server = await Valkey.start(tmp_path / "valkey")
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def raw(valkey: Valkey) -> AsyncIterator[Redis]:
    client = Redis.from_url(valkey.url)
    yield client
    await client.aclose()


async def back_again(store: RedisResponseStore, entry_id: str) -> Entry | None:
    """Read until the server is back."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await store.get("public", entry_id)
            except StoreUnavailable:
                await asyncio.sleep(0.01)


async def test_answers_stay_with_their_questions_when_commands_are_cancelled(
    valkey: Valkey, tmp_path: Path
) -> None:
    """F03: after many cancelled reads each key reads its own value and no connection is lost."""
    clock, chance = Clock(), random.Random(3)
    wire_path = Path(valkey.url.removeprefix("unix://"))
    async with SlowWire(wire_path, tmp_path / "wire") as wire:
        store = RedisResponseStore(f"unix://{wire.path}", max_connections=2, wait_s=5, clock=clock)
        for n in range(NUM_PROMPTS):
            await store.put(make_entry(str(n), clock, answer=f"ECHO:{n}".encode()))
        wire.delay_s = 0.01

        async def ask(n: int) -> tuple[int, bytes] | None:
            patience = chance.uniform(0.0, 0.03) if chance.random() < 0.5 else 60.0
            try:
                async with asyncio.timeout(patience):
                    read = chance.choice([store.get, lambda t, i: first(store, t, i)])
                    entry = await read("public", str(n))
            except TimeoutError:
                return None
            return n, b"" if entry is None else entry.answer

        tasks = [asyncio.create_task(ask(chance.randrange(NUM_PROMPTS))) for _ in range(200)]
        answers = [answer for answer in await asyncio.gather(*tasks) if answer is not None]
        assert 20 < len(answers) < 200
        wire.delay_s = 0.0
        for n in range(NUM_PROMPTS):
            entry = await store.get("public", str(n))
            answers.append((n, b"" if entry is None else entry.answer))
        assert [a for a in answers if a[1] != f"ECHO:{a[0]}".encode()] == []
        await asyncio.sleep(0)
        assert len(store._connection._pool._in_use_connections) == 0
        assert store._connection._turns._value == 2
        await store.close()


async def first(store: RedisResponseStore, tenant: str, entry_id: str) -> Entry | None:
    return (await store.get_many(tenant, [entry_id, "x"]))[0]


async def test_writes_stay_whole_when_they_are_cancelled(valkey: Valkey, tmp_path: Path) -> None:
    """Cancelled puts and deletes leave connections whose next reply is their own."""
    clock = Clock()
    server = Path(valkey.url.removeprefix("unix://"))
    async with SlowWire(server, tmp_path / "wire") as wire:
        store = RedisResponseStore(f"unix://{wire.path}", max_connections=2, wait_s=5, clock=clock)
        await store.put(make_entry("kept", clock))
        wire.delay_s = 0.01
        for step in range(40):
            entry = make_entry(f"{step}", clock, tags=("t",))
            work = store.put(entry) if step % 2 else store.delete("public", ["x", "y", "z"])
            with_patience = asyncio.wait_for(work, 0.0005 * step)
            await asyncio.gather(with_patience, return_exceptions=True)
        wire.delay_s = 0.0
        for _ in range(4):
            kept = await store.get("public", "kept")
            assert kept is not None
            assert kept.entry_id == "kept"
            assert await store.delete("public", ["nope"]) == []
        assert len(store._connection._pool._in_use_connections) == 0
        await store.close()


async def test_caller_is_refused_when_all_connections_stay_busy(
    valkey: Valkey, tmp_path: Path
) -> None:
    """Waiting for a turn is bounded, and its end is the named error."""
    server = Path(valkey.url.removeprefix("unix://"))
    async with SlowWire(server, tmp_path / "wire") as wire:
        store = RedisResponseStore(f"unix://{wire.path}", max_connections=1, wait_s=0.02)
        await store.ping()
        wire.delay_s = 0.3
        slow = asyncio.create_task(store.ping())
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable, match="busy"):
            await store.ping()
        await slow
        await store.close()


async def test_slow_command_is_given_up_when_its_time_is_over(
    valkey: Valkey, tmp_path: Path
) -> None:
    """A reply later than the command timeout raises the named error, once and not retried."""
    server = Path(valkey.url.removeprefix("unix://"))
    async with SlowWire(server, tmp_path / "wire") as wire:
        store = RedisResponseStore(f"unix://{wire.path}", command_timeout_s=0.05)
        await store.ping()
        wire.delay_s = 5.0
        async with asyncio.timeout(2.0):
            with pytest.raises(StoreUnavailable):
                await store.ping()
        assert wire.num_links == 1
        wire.delay_s = 0.0
        await store.ping()
        await store.close()


async def test_every_key_has_a_ttl_when_entries_of_many_lengths_are_kept(
    valkey: Valkey, raw: Redis
) -> None:
    """No key is for ever, and an index lives as long as its longest entry."""
    clock = Clock()
    store = RedisResponseStore(valkey.url, clock=clock)
    for ttl_s in (50.0, 500.0, 5.0):
        await store.put(make_entry(f"{ttl_s}", clock, ttl_s=ttl_s, tags=("t", f"t{ttl_s}")))
    await store.get("public", "50.0")
    ttls = {key.decode(): await raw.pttl(key) for key in await raw.keys()}
    assert all(ttl > 0 for ttl in ttls.values()), ttls
    assert 49_000 < ttls[Keys("strata").entry("public", "50.0")] <= 50_000
    for index in (Keys("strata").created, Keys("strata").expiry, Keys("strata").tag("t")):
        assert 499_000 < ttls[index] <= 500_000
    await store.close()


async def test_value_is_absent_when_it_belongs_to_another_key(valkey: Valkey, raw: Redis) -> None:
    """A stored value that names another tenant or id, or is broken, is never served."""
    clock, reasons = Clock(), list[str]()
    store = RedisResponseStore(valkey.url, clock=clock, on_reject=reasons.append)
    keys = Keys("strata")
    await raw.set(keys.entry("a", "1"), EntryCodec().encode(make_entry("1", clock, tenant="b")))
    await raw.set(keys.entry("a", "2"), EntryCodec().encode(make_entry("1", clock, tenant="a")))
    await raw.set(keys.entry("a", "3"), b"\x02not zstd")
    await raw.set(keys.entry("a", "4"), b"\x09")
    await raw.set(keys.entry("a", "5"), b"")
    assert await store.get_many("a", ["1", "2", "3", "4", "5"]) == [None] * 5
    assert reasons == ["misplaced", "misplaced", "corrupt", "corrupt", "corrupt"]
    await store.close()


async def test_sweep_drops_index_members_when_their_entry_was_lost(
    valkey: Valkey, raw: Redis
) -> None:
    """Members without an entry go from every index, and indexes without members from the list."""
    clock = Clock()
    store = RedisResponseStore(valkey.url, clock=clock)
    for number in range(1200):
        await store.put(make_entry(f"{number}", clock, tags=(f"t{number % 3}",)))
    lost = [f"{number}" for number in range(1200) if number % 3 == 0 or number % 7 == 0]
    await raw.delete(*(Keys("strata").entry("public", entry_id) for entry_id in lost))
    assert await store.sweep(clock.now) == len(lost)
    assert await store.count() == 1200 - len(lost)
    assert await raw.zcard(Keys("strata").tenant("public")) == 1200 - len(lost)
    assert not await raw.sismember(Keys("strata").registry, Keys("strata").tag("t0"))
    assert await raw.zcard(Keys("strata").tag("t1")) > 0
    await store.close()


async def test_get_sends_one_command_when_an_entry_is_read(valkey: Valkey, raw: Redis) -> None:
    """One round trip for a get, one for many, one script for a put."""
    clock = Clock()
    store = RedisResponseStore(valkey.url, max_connections=1, clock=clock)
    await store.put(make_entry("e", clock))
    await raw.config_resetstat()
    await store.get("public", "e")
    await store.get_many("public", ["e", "f"])
    await store.put(make_entry("e", clock, tags=("a", "b")))
    stats = await raw.info("commandstats")
    calls = {name: stat["calls"] for name, stat in stats.items() if "config" not in name}
    sent = {name: calls[name] for name in ("cmdstat_get", "cmdstat_mget", "cmdstat_evalsha")}
    assert sent == {"cmdstat_get": 1, "cmdstat_mget": 1, "cmdstat_evalsha": 1}
    await store.close()


async def test_oldest_make_room_when_the_server_is_full(tmp_path: Path) -> None:
    """A full server drops what ends soonest, with its index places, and keeps the newest."""
    server = await Valkey.start(tmp_path, max_memory_bytes=8_000_000)
    clock = Clock()
    store = RedisResponseStore(server.url, clock=clock)
    for number in range(60):
        entry = make_entry(f"{number}", clock, answer=os.urandom(200_000), ttl_s=100 + number)
        await store.put(entry)
        assert await store.get("public", f"{number}") is not None
    page = await store.select(Selector(everything=True), cursor=None, limit=100)
    assert 5 < len(page.entries) < 60
    assert await store.count() == len(page.entries)
    await store.close()
    await server.stop()


async def test_room_is_told_when_the_server_counts(valkey: Valkey, raw: Redis) -> None:
    """What is used and allowed; whether a full server drops entries by itself."""
    store = RedisResponseStore(valkey.url)
    try:
        own = await store.room()
        await raw.config_set("maxmemory", 1 << 30)
        await raw.config_set("maxmemory-policy", "allkeys-lru")
        other = await store.room()
    finally:
        await store.close()
    assert own is not None
    assert own.used_bytes > 0
    assert (own.limit_bytes, own.drops_entries) == (0, False)
    assert other is not None
    assert (other.limit_bytes, other.drops_entries, other.num_dropped) == (1 << 30, True, 0)


async def test_store_heals_when_the_server_is_killed(valkey: Valkey) -> None:
    """The killed server is started again with what it had, and the same store reads it."""
    clock = Clock()
    store = RedisResponseStore(valkey.url, clock=clock)
    await store.put(make_entry("e", clock, tags=("t",)))
    assert valkey.pid is not None
    os.kill(valkey.pid, signal.SIGKILL)
    assert await back_again(store, "e") == make_entry("e", clock, tags=("t",))
    assert valkey.num_restarts == 1
    page = await store.select(Selector(tag="t"), cursor=None, limit=5)
    assert len(page.entries) == 1
    await store.put(make_entry("new", clock))
    await store.close()


async def test_store_works_when_its_server_comes_later(tmp_path: Path) -> None:
    """Opening does not need the server; calls before it is up raise the named error."""
    store = RedisResponseStore(f"unix://{tmp_path}/valkey.sock")
    with pytest.raises(StoreUnavailable):
        await store.ping()
    server = await Valkey.start(tmp_path)
    await store.ping()
    await store.close()
    await server.stop()


def test_small_and_noisy_entries_stay_plain_when_compression_gains_nothing() -> None:
    """The format byte says plain where zstd would not help, zstd where it does."""
    clock = Clock()
    small, noisy = make_entry("s", clock), make_entry("n", clock, answer=os.urandom(4000))
    wordy = make_entry("w", clock, answer=b"word " * 800)
    assert EntryCodec().encode(small)[:1] == EntryCodec().encode(noisy)[:1] == b"\x01"
    assert EntryCodec().encode(wordy)[:1] == b"\x02"
    assert len(EntryCodec().encode(wordy)) < 500
    for entry in (small, noisy, wordy):
        assert EntryCodec().decode(EntryCodec().encode(entry)) == entry


@pytest.mark.parametrize(
    "value", [b"", b"\x00", b"\x01", b"\x01\xc1", b"\x02", b"\x02\x28\xb5\x2f\xfd"]
)
def test_decoding_raises_when_the_bytes_are_not_ours(value: bytes) -> None:
    """Whatever the bytes, the error is the named one."""
    with pytest.raises(EntryCorrupt):
        EntryCodec().decode(value)


@pytest.mark.parametrize("tenant", ["a:b", "a%3Ab", "", "公司", "\udc80", "{}", "a\n"])
def test_member_names_give_back_tenant_and_id_when_parsed(tenant: str) -> None:
    """Names are unambiguous, so an index member says whose it is."""
    assert parse_member(member_name(tenant, "e:1")) == (tenant, "e:1")
