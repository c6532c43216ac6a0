"""What several gateways share over a real Valkey: leases, and the points that others stored."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from semantic_layer import (
    MemoryVectorIndex,
    SharedIndex,
    StoreUnavailable,
    Valkey,
    open_leases,
    open_point_feed,
)
from semantic_layer.stores.redis_connection import RedisConnection
from semantic_layer.stores.redis_feed import RedisFeed
from semantic_layer.stores.redis_leases import RedisLease, RedisLeases
from semantic_layer.stores.vector_index import Point

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOBODY = "redis://127.0.0.1:9"
DIM = 4
FOREVER = 4e9
Gateway = Callable[..., SharedIndex]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def valkey(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Valkey]:
    server = await Valkey.start(tmp_path_factory.mktemp("sharing"))
    yield server
    await server.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def leases(valkey: Valkey) -> AsyncIterator[Callable[[float], RedisLeases]]:
    opened: list[RedisLeases] = []

    def gateway(ttl_s: float = 5.0) -> RedisLeases:
        opened.append(RedisLeases(RedisConnection(valkey.url), ttl_s=ttl_s))
        return opened[-1]

    yield gateway
    for each in opened:
        await each.close()


async def test_lease_is_given_once_when_two_ask(leases: Callable[..., RedisLeases]) -> None:
    """Until it is released; other names are other leases."""
    one, two = leases(), leases()
    held = await one.acquire("k")
    assert held is not None
    assert await two.acquire("k") is None
    other = await two.acquire("other")
    assert other is not None
    await held.release()
    taken = await two.acquire("k")
    assert taken is not None
    await held.release()
    assert await one.acquire("k") is None, "a release is only for one's own"
    await taken.release()
    await other.release()


async def left_of(lease: RedisLease) -> int:
    """Return the milliseconds that a lease lives on if it is not renewed."""
    return int(await lease._leases._connection.client.pttl(lease._key))


async def test_lease_lives_while_its_holder_does(leases: Callable[..., RedisLeases]) -> None:
    """It is renewed beyond its time to live, and lost when its holder stops."""
    one, two = leases(3.0), leases(3.0)
    held = await one.acquire("renewed")
    assert held is not None
    async with asyncio.timeout(60):
        before_ms = 3000
        while (left_ms := await left_of(held)) <= before_ms:
            before_ms = left_ms
            await asyncio.sleep(0.05)
    assert await two.acquire("renewed") is None
    held._renewing.cancel()
    async with asyncio.timeout(60):
        while (taken := await two.acquire("renewed")) is None:
            await asyncio.sleep(0.05)
    await taken.release()


async def test_lease_is_unavailable_when_the_server_is() -> None:
    """One named error."""
    leases = open_leases(NOBODY, connect_timeout_s=0.2, command_timeout_s=0.2)
    with pytest.raises(StoreUnavailable):
        await leases.acquire("k")
    await leases.close()


def point(entry_id: str, *, expires_at: float = FOREVER, at: int = 0) -> Point:
    vector = np.zeros(DIM, np.float32)
    vector[at] = 1
    return Point(entry_id, "acme", "scope", "general", expires_at, ("tag",), vector)


async def found(index: SharedIndex, at: int = 0) -> list[str]:
    vector = point("", at=at).vector
    near = await index.search(vector, tenant="acme", scope="scope", now=0, limit=50)
    return sorted(each.entry_id for each in near if each.similarity > 0.9)


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(valkey: Valkey) -> AsyncIterator[Gateway]:
    opened: list[SharedIndex] = []

    def start(name: str, position_file: Path | None = None, max_points: int = 1000) -> SharedIndex:
        feed = RedisFeed(RedisConnection(valkey.url), name, wait_ms=50, max_points=max_points)
        opened.append(SharedIndex(MemoryVectorIndex(DIM), feed, position_file=position_file))
        return opened[-1]

    yield start
    for each in opened:
        await each.close()


async def test_point_is_found_by_all_when_one_stores_it(gateway: Gateway) -> None:
    """Before anybody asks for it, and with everything that a search needs."""
    one, two = gateway("plain"), gateway("plain")
    following = asyncio.create_task(two.follow())
    await one.upsert([point("a"), point("b"), point("c", at=1)])
    async with asyncio.timeout(5):
        while await two.count() < 3:
            await asyncio.sleep(0.01)
    following.cancel()
    assert await found(two) == ["a", "b"]
    assert await found(two, at=1) == ["c"]
    assert await one.learn() == 0, "its own points are no news"


async def test_late_comer_learns_what_was_stored_before(gateway: Gateway) -> None:
    """What has expired since is left out."""
    one = gateway("late")
    await one.upsert([point("old", expires_at=1.0), point("live")])
    late = gateway("late")
    assert await late.learn() == 1
    assert await found(late) == ["live"]


async def test_feed_keeps_its_place_when_a_gateway_is_restarted(
    gateway: Gateway, tmp_path: Path
) -> None:
    """A point it has forgotten since does not come back."""
    file = tmp_path / "place"
    one, two = gateway("place"), gateway("place", file)
    await one.upsert([point("a")])
    assert await two.learn() == 1
    await one.upsert([point("b")])
    restarted = gateway("place", file)
    assert await restarted.learn() == 1
    assert await found(restarted) == ["b"]


async def test_feed_is_bounded_when_nobody_reads_it(gateway: Gateway, valkey: Valkey) -> None:
    """The last points are kept, about as many as allowed."""
    one = gateway("bounded", max_points=100)
    for start in range(0, 1000, 100):
        await one.upsert([point(f"e{at}") for at in range(start, start + 100)])
    connection = RedisConnection(valkey.url)
    length = await connection.client.xlen("strata:feed:bounded")
    assert 100 <= length < 400
    assert await connection.client.ttl("strata:feed:bounded") > 0
    await connection.close()


async def test_feeds_are_apart_when_their_names_differ(gateway: Gateway) -> None:
    """Vectors of another embedder never get in."""
    one, two = gateway("e5-384"), gateway("other-384")
    await one.upsert([point("a")])
    assert await two.learn() == 0


async def test_rubbish_is_passed_over_when_another_version_wrote_it(
    gateway: Gateway, valkey: Valkey
) -> None:
    """What cannot be read is no point, and stops nothing."""
    one, two = gateway("rubbish"), gateway("rubbish")
    connection = RedisConnection(valkey.url)
    for fields in ({b"p": b"\xc1"}, {b"x": b"y"}, {b"p": b"\x90"}):
        await connection.client.xadd("strata:feed:rubbish", fields)
    await connection.close()
    await one.upsert([point("a")])
    assert await two.learn() == 1


async def test_store_goes_on_here_when_the_feed_is_down() -> None:
    """Others learn nothing, this gateway loses nothing."""
    feed = open_point_feed(NOBODY, "down", connect_timeout_s=0.2)
    alone = SharedIndex(MemoryVectorIndex(DIM), feed)
    await alone.upsert([point("a")])
    assert await found(alone) == ["a"]
    with pytest.raises(StoreUnavailable):
        await alone.learn()
    await alone.close()


async def test_nobody_waits_for_leases_when_the_server_hangs() -> None:
    """After a few that waited in vain the rest is told at once."""
    refused = []
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # the system connects, nobody answers
        url = f"redis://127.0.0.1:{deaf.getsockname()[1]}"
        leases = open_leases(url, connect_timeout_s=0.05, command_timeout_s=0.05)
        for number in range(12):
            with pytest.raises(StoreUnavailable) as told:
                await leases.acquire(str(number))
            refused.append(str(told.value))
        await leases.close()
    assert "redis: breaker open" not in refused[:4]
    assert refused[5:].count("redis: breaker open") >= 5
