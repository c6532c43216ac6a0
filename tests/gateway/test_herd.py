"""One generation among several gateways: who leads, who follows, who takes over."""

import asyncio
from collections.abc import AsyncIterator

from gateway.answer import Answer, Choice
from gateway.backends.base import Delta, Event, Final, Usage
from gateway.herd import Herd
from gateway.write_back import Job
from semantic_layer import StoreUnavailable

ANSWER = Answer([Choice(0, "stop", "stored")], Usage(1, 1))


class Store:
    """What the gateways share: one lease and one entry."""

    def __init__(self) -> None:
        self.holder: object | None = None
        self.entry: Answer | None = None
        self.is_down = False

    async def acquire(self, name: str) -> "Held | None":
        if self.is_down:
            raise StoreUnavailable("down")
        if self.holder is not None:
            return None
        self.holder = held = Held(self)
        return held

    async def stored(self) -> Answer | None:
        return self.entry

    async def close(self) -> None:
        return


class Held:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def release(self) -> None:
        if self._store.holder is self:
            self._store.holder = None


class Gateway:
    """One gateway of several; its generations wait for ``may_end``."""

    def __init__(self, store: Store, *, stores: bool = True, patience_s: float = 60) -> None:
        self.store = store
        self.may_end = asyncio.Event()
        self.num_generations = 0
        self.followed = False
        self._stores = stores
        self._herd = Herd(store, self._after_writes, patience_s)

    async def _after_writes(self, job: Job) -> None:
        await job()

    async def generate(self) -> AsyncIterator[Event]:
        self.num_generations += 1
        yield Delta(0, "made")
        await self.may_end.wait()
        if self._stores:
            self.store.entry = ANSWER
        yield Final(Usage())

    async def text(self) -> str:
        def follow() -> None:
            self.followed = True

        events = self._herd.events("k", self.store.stored, self.generate, follow)
        return "".join([getattr(event, "text", "") async for event in events])


async def begun(gateway: Gateway) -> asyncio.Task[str]:
    """Start a request and wait until it generates."""
    task = asyncio.create_task(gateway.text())
    async with asyncio.timeout(5):
        while not gateway.num_generations:
            await asyncio.sleep(0)
    return task


async def test_others_get_the_stored_answer_when_one_generates() -> None:
    """Two gateways, one generation."""
    store = Store()
    one, two = Gateway(store), Gateway(store)
    leading = await begun(one)
    following = asyncio.create_task(two.text())
    await asyncio.sleep(0)
    one.may_end.set()
    assert await leading == "made"
    assert await following == "stored"
    assert (two.num_generations, two.followed, one.followed) == (0, True, False)
    assert store.holder is None


async def test_next_one_takes_over_when_the_leader_gives_up() -> None:
    """An aborted generation leaves no entry; whoever waits begins anew."""
    store = Store()
    one, two = Gateway(store), Gateway(store)
    leading = await begun(one)
    following = asyncio.create_task(two.text())
    await asyncio.sleep(0)
    leading.cancel()
    await asyncio.wait([leading])
    two.may_end.set()
    assert await following == "made"
    assert (two.num_generations, two.followed) == (1, False)


async def test_every_gateway_generates_when_an_answer_may_not_be_stored() -> None:
    """One after the other; nobody waits for ever."""
    store = Store()
    one, two = Gateway(store, stores=False), Gateway(store, stores=False)
    leading = await begun(one)
    following = asyncio.create_task(two.text())
    for gateway in (one, two):
        gateway.may_end.set()
    assert [await leading, await following] == ["made", "made"]


async def test_nobody_generates_when_the_entry_came_just_before() -> None:
    """The look-up missed, the leader stored and went: its entry is seen under the lease."""
    store = Store()
    store.entry = ANSWER
    late = Gateway(store)
    assert await late.text() == "stored"
    assert (late.num_generations, store.holder) == (0, None)


async def test_request_is_answered_when_leases_cannot_be_had() -> None:
    """A lease problem never fails a request."""
    store = Store()
    store.is_down = True
    one, two = Gateway(store), Gateway(store)
    for gateway in (one, two):
        gateway.may_end.set()
    assert [await one.text(), await two.text()] == ["made", "stored"]


async def test_gateway_generates_itself_when_the_leader_takes_too_long() -> None:
    """A client that stalls one gateway's generation does not stall the other's callers."""
    store = Store()
    stalled, other = Gateway(store), Gateway(store, patience_s=0.05)
    leading = await begun(stalled)
    other.may_end.set()
    assert await other.text() == "made"
    assert store.holder is not None, "the lease is still the leader's"
    stalled.may_end.set()
    assert await leading == "made"
