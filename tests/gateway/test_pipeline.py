"""The pipeline: from which layer a call is answered, what is stored, and what is recorded."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from gateway.auth import Tenant
from gateway.backends.base import Delta, Event, Final, Finish, Usage
from gateway.backends.routing import Backends
from gateway.call import Call
from gateway.errors import BackendError, ModelNotFound, NotCached
from gateway.flight import FlightGroup
from gateway.pipeline import Pipeline
from gateway.quotas import Quotas
from gateway.record import RequestRecord
from gateway.reply import Reply
from gateway.stats import counted_as
from gateway.write_back import WriteBack
from semantic_layer import (
    CacheControl,
    MemoryCounters,
    MemoryResponseStore,
    MemoryVectorIndex,
    Selector,
    SemanticCache,
)
from tests.fakes.backends import FakeBackend, whole

CALL = Call(
    request_id="r1",
    tenant=Tenant.named("alpha"),
    model="m",
    body={"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    control=CacheControl(),
    route="/v1/chat/completions",
)
HELLO = whole("hello")


class Gateway:
    """A pipeline over a fake backend and an exact cache in memory, with its records."""

    def __init__(self, backend: FakeBackend) -> None:
        self.backend = backend
        self.records: list[RequestRecord] = []
        self.flights = FlightGroup()
        self.write_back = WriteBack(8, lambda: None)
        self.cache = SemanticCache(
            store=MemoryResponseStore(), index=MemoryVectorIndex(1), embedder=None
        )
        self.pipeline = Pipeline(
            cache=self.cache,
            backends=Backends([backend]),
            flights=self.flights,
            quotas=Quotas(MemoryCounters()),
            write_back=self.write_back,
            on_record=self.records.append,
        )

    async def ask(self, call: Call = CALL) -> tuple[str, str]:
        """Return the outcome and the answer's text."""
        reply = await self.pipeline.run(call)
        return reply.report.outcome, (await reply.answer()).text

    async def num_entries(self) -> int:
        page = await self.cache.browse(Selector(everything=True), None, 100)
        return len(page.entries)


@pytest.fixture
async def open_gateway() -> AsyncIterator[Callable[[FakeBackend], Awaitable[Gateway]]]:
    workers: list[asyncio.Task[None]] = []

    async def start(backend: FakeBackend) -> Gateway:
        gateway = Gateway(backend)
        workers.append(asyncio.create_task(gateway.write_back.run()))
        return gateway

    yield start
    for worker in workers:
        worker.cancel()
    await asyncio.wait(workers)


Open = Callable[[FakeBackend], Awaitable[Gateway]]


async def events_of(reply: Reply) -> list[Event]:
    return [event async for event in reply.events()]


async def test_repeat_is_an_exact_hit_with_the_same_answer(open_gateway: Open) -> None:
    """The second of two equal calls costs no generation and loses nothing."""
    gateway = await open_gateway(FakeBackend(HELLO))
    first = await (await gateway.pipeline.run(CALL)).answer()
    again = await gateway.pipeline.run(replace(CALL, request_id="r2"))
    assert again.report.outcome == "exact"
    assert await again.answer() == first
    assert len(gateway.backend.calls) == 1


async def test_streamed_call_and_whole_call_share_one_entry(open_gateway: Open) -> None:
    """How an answer is delivered has no part in what it is."""
    gateway = await open_gateway(FakeBackend(HELLO))
    streamed = replace(CALL, body={**CALL.body, "stream": True})
    await events_of(await gateway.pipeline.run(streamed))
    assert await gateway.ask() == ("exact", "hello")
    replayed = await events_of(await gateway.pipeline.run(streamed))
    assert "".join(e.text for e in replayed if isinstance(e, Delta)) == "hello"
    assert replayed[-2:] == [Finish(0, "stop"), Final(Usage(7, 5, 0))]


async def test_identical_calls_in_flight_share_one_generation(open_gateway: Open) -> None:
    """Followers wait for the leader's answer and say so."""
    gateway = await open_gateway(FakeBackend(HELLO))
    gateway.backend.gate.clear()
    replies = [await gateway.pipeline.run(CALL) for _ in range(5)]
    gateway.backend.gate.set()
    answers = await asyncio.gather(*(reply.answer() for reply in replies))
    assert [answer.text for answer in answers] == ["hello"] * 5
    assert [reply.report.coalesced for reply in replies] == [False, True, True, True, True]
    assert len(gateway.backend.calls) == 1


async def test_tenants_share_no_generation_in_flight(open_gateway: Open) -> None:
    """Another tenant's identical call is another call."""
    gateway = await open_gateway(FakeBackend(HELLO))
    gateway.backend.gate.clear()
    mine = await gateway.pipeline.run(CALL)
    other = await gateway.pipeline.run(replace(CALL, tenant=Tenant.named("beta")))
    assert not other.report.coalesced
    assert len(gateway.backend.calls) == 2
    await mine.aclose()
    await other.aclose()


@pytest.mark.parametrize(
    ("control", "outcomes", "entries"),
    [
        (CacheControl(), ["miss", "exact"], 1),
        (CacheControl(no_cache=True), ["miss", "miss"], 1),
        (CacheControl(no_store=True), ["miss", "miss"], 0),
        (CacheControl(no_cache=True, no_store=True), ["bypass", "bypass"], 0),
    ],
)
async def test_caller_decides_what_is_read_and_written(
    open_gateway: Open, control: CacheControl, outcomes: list[str], entries: int
) -> None:
    """`no-cache` skips reading, `no-store` writing, both together the caches."""
    gateway = await open_gateway(FakeBackend(HELLO))
    call = replace(CALL, control=control)
    assert [(await gateway.ask(call))[0] for _ in range(2)] == outcomes
    assert await gateway.num_entries() == entries


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ([Delta(0, "a"), Finish(0, "stop")], None),
        ([Delta(0, "a"), Final(Usage())], None),
        ([Delta(0, "a")], BackendError("cut")),
        ([Delta(0, "a"), Delta(1, "b"), Finish(0, "stop"), Final(Usage())], None),
    ],
)
async def test_cut_answer_fails_and_is_never_stored(
    open_gateway: Open, script: list[Event], error: Exception | None
) -> None:
    """What did not end properly is an error for its reader and nothing for the caches."""
    gateway = await open_gateway(FakeBackend(script, error=error))
    reply = await gateway.pipeline.run(CALL)
    with pytest.raises(BackendError):
        await reply.answer()
    assert await gateway.num_entries() == 0
    assert (await gateway.pipeline.run(CALL)).report.outcome == "miss"


async def test_filtered_answer_is_given_but_not_stored(open_gateway: Open) -> None:
    """What a filter cut is no answer to keep."""
    gateway = await open_gateway(FakeBackend(whole("no", reason="content_filter")))
    assert (await gateway.ask())[0] == "miss"
    assert await gateway.num_entries() == 0


async def test_answer_cut_by_its_limit_serves_exact_repeats(open_gateway: Open) -> None:
    """The limit is part of the key, so the same call may have the same cut answer."""
    gateway = await open_gateway(FakeBackend(whole("hel", reason="length")))
    await gateway.ask()
    assert await gateway.ask() == ("exact", "hel")
    page = await gateway.cache.browse(Selector(everything=True), None, 10)
    assert [entry.exact_only for entry in page.entries] == [True]


async def test_generation_is_aborted_and_not_stored_when_the_reader_leaves(
    open_gateway: Open,
) -> None:
    """A client that goes away stops the work it asked for."""
    gateway = await open_gateway(FakeBackend(HELLO))
    gateway.backend.gate.clear()
    events = (await gateway.pipeline.run(CALL)).events()
    await anext(events)
    await events.aclose()  # type: ignore[attr-defined]
    await gateway.flights.drain()
    assert gateway.backend.aborted == 1
    assert [record.end for record in gateway.records] == ["aborted"]
    assert await gateway.num_entries() == 0


async def test_answer_is_stored_when_only_the_first_of_two_readers_leaves(
    open_gateway: Open,
) -> None:
    """The follower's full answer is as good as the leader's would have been."""
    gateway = await open_gateway(FakeBackend(HELLO))
    gateway.backend.gate.clear()
    leader = await gateway.pipeline.run(CALL)
    follower = await gateway.pipeline.run(CALL)
    await leader.aclose()
    gateway.backend.gate.set()
    assert (await follower.answer()).text == "hello"
    assert (await gateway.ask())[0] == "exact"


async def test_unknown_model_is_not_found_unless_an_answer_was_imported(
    open_gateway: Open,
) -> None:
    """Imports accept any model name; nothing else makes a model known."""
    gateway = await open_gateway(FakeBackend(HELLO))
    call = replace(CALL, model="gone", body={**CALL.body, "model": "gone"})
    with pytest.raises(ModelNotFound):
        await gateway.pipeline.run(call)
    await gateway.ask()
    page = await gateway.cache.browse(Selector(everything=True), None, 1)
    await gateway.cache.insert(
        gateway.pipeline.query(call), CacheControl(), page.entries[0].answer, answer_text="hello"
    )
    assert await gateway.ask(call) == ("exact", "hello")


async def test_only_if_cached_never_generates(open_gateway: Open) -> None:
    """A caller that allows a cached answer only gets that or an error."""
    gateway = await open_gateway(FakeBackend(HELLO))
    call = replace(CALL, control=CacheControl(only_if_cached=True))
    with pytest.raises(NotCached):
        await gateway.pipeline.run(call)
    assert gateway.backend.calls == []
    await gateway.ask()
    assert (await gateway.ask(call))[0] == "exact"


async def test_miss_is_recorded_when_only_the_cache_was_asked(open_gateway: Open) -> None:
    """A 504 of only-if-cached is no error of ours: a miss without a first token."""
    gateway = await open_gateway(FakeBackend(HELLO))
    with pytest.raises(NotCached):
        await gateway.pipeline.run(replace(CALL, control=CacheControl(only_if_cached=True)))
    (record,) = gateway.records
    assert (record.outcome, record.end, record.ttft_s) == ("miss", "ok", None)
    assert counted_as(record) == "miss"


async def test_unreadable_answer_is_a_miss(open_gateway: Open) -> None:
    """An entry of another version costs a generation, not an error."""
    gateway = await open_gateway(FakeBackend(HELLO))
    query = gateway.pipeline.query(CALL)
    await gateway.cache.insert(query, CacheControl(), b"\xc1 not an answer", answer_text="")
    assert await gateway.ask() == ("miss", "hello")
    assert await gateway.ask() == ("exact", "hello")


async def test_every_call_is_recorded_exactly_once(open_gateway: Open) -> None:
    """Hits, misses, errors and aborted calls each count one, with their numbers."""
    gateway = await open_gateway(FakeBackend(HELLO))
    await gateway.ask()
    await gateway.ask()
    with pytest.raises(ModelNotFound):
        await gateway.pipeline.run(replace(CALL, model="x", body={**CALL.body, "model": "x"}))
    abandoned = await gateway.pipeline.run(replace(CALL, control=CacheControl(no_cache=True)))
    await abandoned.aclose()
    await abandoned.aclose()
    seen = [(record.outcome, record.end) for record in gateway.records]
    assert seen == [("miss", "ok"), ("exact", "ok"), ("miss", "error"), ("miss", "aborted")]
    assert gateway.records[0].usage == gateway.records[1].usage == Usage(7, 5, 0)
    assert gateway.records[2].usage is None
    first = gateway.records[0]
    assert first.ttft_s is not None
    assert 0 < first.ttft_s <= first.seconds
