"""Stale answers in process: served, told to be stale, and made anew once beside the traffic."""

import asyncio
from dataclasses import replace
from typing import Any

from gateway.errors import BackendUnavailable
from gateway.pipeline import Pipeline
from gateway.quotas import Quotas
from gateway.refresh import MOST, Refresher
from semantic_layer import (
    CachePolicy,
    MemoryCounters,
    MemoryResponseStore,
    MemoryVectorIndex,
    SemanticCache,
)
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway
from tests.fakes.stores import Clock

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi there"}]}


async def until(met: Any) -> None:
    async with asyncio.timeout(10):
        while not met():
            await asyncio.sleep(0)


class Refreshing(MemoryGateway):
    """A gateway over a cache whose answers are fresh for 60 s and stale for 60 more."""

    def __init__(self, backend: FakeBackend) -> None:
        super().__init__(backend)
        self.clock, self.ends = Clock(), list[str]()
        self.cache = SemanticCache(
            store=MemoryResponseStore(clock=self.clock),
            index=MemoryVectorIndex(1),
            embedder=None,
            policy=CachePolicy(ttl_s=60, stale_s=60),
            clock=self.clock,
        )
        self.pipeline = Pipeline(
            cache=self.cache,
            backends=self.parts.backends,
            flights=self.flights,
            write_back=self.write_back,
            quotas=Quotas(MemoryCounters()),
            on_record=self.records.append,
            refresher=Refresher(self.ends.append),
        )
        self.parts = replace(self.parts, cache=self.cache, pipeline=self.pipeline)


async def test_stale_answer_is_made_anew_once_when_it_is_asked_for() -> None:
    """All who ask get the stale answer at once and are told so; one generation follows."""
    backend = FakeBackend(whole("new"))
    gateway = Refreshing(backend)
    async with gateway.client() as client:
        assert (await client.post(CHAT, json=BODY)).headers["x-strata-cache"] == "miss"
        gateway.clock.now += 70
        calls = len(backend.calls)
        answers = await asyncio.gather(*(client.post(CHAT, json=BODY) for _ in range(5)))
        for answer in answers:
            assert answer.headers["x-strata-cache"] == "exact"
            assert answer.headers["x-strata-stale"] == "1"
            assert answer.headers["cache-status"] == "strata; hit; ttl=-10"
            assert answer.headers["age"] == "70"
        await until(lambda: gateway.ends)
        assert len(backend.calls) == calls + 1
        fresh = await client.post(CHAT, json=BODY)
        assert (fresh.headers["x-strata-cache"], fresh.headers["age"]) == ("exact", "0")
        assert "x-strata-stale" not in fresh.headers
    assert gateway.ends == ["done"]
    assert len(gateway.records) == 7


async def test_stale_answer_stays_when_it_cannot_be_made_anew() -> None:
    """A backend that fails costs nobody an answer; the next stale hit tries again."""
    backend = FakeBackend(whole("old"))
    gateway = Refreshing(backend)
    async with gateway.client() as client:
        await client.post(CHAT, json=BODY)
        gateway.clock.now += 70
        backend.script, backend.error = [], BackendUnavailable("down")
        for count in (1, 2):
            assert (await client.post(CHAT, json=BODY)).headers["x-strata-stale"] == "1"
            await until(lambda count=count: len(gateway.ends) == count)
    assert gateway.ends == ["failed", "failed"]


async def test_nothing_is_made_anew_when_the_caller_stores_nothing() -> None:
    """no-store takes a stale answer and starts nothing; only-if-cached may take one too."""
    backend = FakeBackend(whole("old"))
    gateway = Refreshing(backend)
    async with gateway.client() as client:
        await client.post(CHAT, json=BODY)
        gateway.clock.now += 70
        answer = await client.post(CHAT, json=BODY, headers={"cache-control": "no-store"})
        assert answer.headers["x-strata-stale"] == "1"
        young = await client.post(CHAT, json=BODY, headers={"cache-control": "max-age=60"})
        assert young.headers["x-strata-cache"] == "miss"
    assert gateway.ends == []


async def test_refreshes_are_bounded() -> None:
    """So many run at once; one more is left out, and all end with the refresher."""
    ends: list[str] = []
    refresher, gate = Refresher(ends.append), asyncio.Event()

    async def opened() -> None:
        await gate.wait()

    for at in range(MOST + 1):
        refresher.start(f"key {at}", opened)
    refresher.start("key 0", opened)
    assert ends == ["skipped"]
    await asyncio.sleep(0)
    await refresher.close()
    assert ends == ["skipped"]
