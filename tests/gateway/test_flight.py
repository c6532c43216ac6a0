"""Single-flight: who shares a generation, and who ends it by leaving."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.backends.base import Delta, Event, Work
from gateway.errors import BackendError
from gateway.flight import MAX_AHEAD, FlightGroup, Listener
from tests.fakes.backends import FakeBackend, whole

WORK = Work("r", "m", {}, b"")


async def read(listener: Listener) -> list[Event]:
    async with listener:
        return [event async for event in listener]


async def test_joined_listener_hears_everything_when_it_comes_late() -> None:
    """A follower gets the whole answer from one generation."""
    backend, flights = FakeBackend(whole("abc")), FlightGroup()
    backend.gate.clear()
    leader = flights.lead("k", lambda: backend.stream(WORK))
    first = await anext(leader)
    follower = flights.join("k")
    assert follower is not None
    backend.gate.set()
    rest, all_of_it = await asyncio.gather(read(leader), read(follower))
    assert [first, *rest] == all_of_it == whole("abc")
    assert len(backend.calls) == 1
    assert flights.join("k") is None


async def test_generation_goes_on_when_the_first_of_two_leaves() -> None:
    """The second client gets the full answer although the first went away."""
    backend, flights = FakeBackend(whole("abc")), FlightGroup()
    backend.gate.clear()
    leader = flights.lead("k", lambda: backend.stream(WORK))
    follower = flights.join("k")
    assert follower is not None
    await anext(leader)
    await leader.aclose()
    backend.gate.set()
    assert await read(follower) == whole("abc")
    assert backend.aborted == 0


async def test_generation_is_aborted_when_the_last_leaves() -> None:
    """Nobody listening means nobody pays for the rest."""
    backend, flights = FakeBackend(whole("abc")), FlightGroup()
    backend.gate.clear()
    leader = flights.lead("k", lambda: backend.stream(WORK))
    await anext(leader)
    await leader.aclose()
    assert flights.join("k") is None, "an aborted flight takes nobody aboard"
    await flights.drain()
    assert backend.aborted == 1
    assert len(flights) == 0


async def test_abort_happens_when_a_waiting_reader_is_cancelled() -> None:
    """A client that goes away while waiting for the next event counts as leaving."""
    backend, flights = FakeBackend(whole("a")), FlightGroup()
    backend.gate.clear()
    reader = asyncio.create_task(read(flights.alone(lambda: backend.stream(WORK))))
    while not backend.calls:
        await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await flights.drain()
    assert backend.aborted == 1
    assert len(flights) == 0


async def test_every_listener_hears_the_error_after_what_came_before() -> None:
    """A broken generation fails all who share it, with the same error."""
    backend = FakeBackend([Delta(0, "a")], error=BackendError("broke"))
    flights = FlightGroup()
    leader = flights.lead("k", lambda: backend.stream(WORK))
    follower = flights.join("k")
    assert follower is not None
    for listener in (leader, follower):
        assert await anext(listener) == Delta(0, "a")
        with pytest.raises(BackendError, match="broke"):
            await anext(listener)


async def test_generation_waits_when_nobody_keeps_up_with_it() -> None:
    """What a client has not read stays in the upstream, and moves on as it reads."""
    made: list[int] = []

    async def source() -> AsyncIterator[Event]:
        for at in range(10 * MAX_AHEAD):
            made.append(at)
            yield Delta(0, str(at))

    flights = FlightGroup()
    slow = flights.lead("k", source)
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(made) == MAX_AHEAD + 1
    for _ in range(MAX_AHEAD):
        await anext(slow)
    await asyncio.sleep(0)
    assert MAX_AHEAD + 1 < len(made) <= 2 * MAX_AHEAD + 1
    fast = flights.join("k")
    assert fast is not None
    assert len(await read(fast)) == 10 * MAX_AHEAD
    assert len(await read(slow)) == 9 * MAX_AHEAD


async def test_waiting_generation_is_aborted_when_its_reader_leaves() -> None:
    """A stalled client that goes away frees the upstream."""
    closed = asyncio.Event()

    async def source() -> AsyncIterator[Event]:
        try:
            while True:
                yield Delta(0, "x")
        finally:
            closed.set()

    flights = FlightGroup()
    stalled = flights.alone(source)
    await anext(stalled)
    await asyncio.sleep(0)
    await stalled.aclose()
    await flights.drain()
    assert closed.is_set()
