"""Connections to an upstream: how long they live and when they are given up."""

import asyncio
from contextlib import aclosing
from typing import Any, cast

import pytest

from gateway.backends.base import Delta
from gateway.backends.upstream import UpstreamBackend
from tests.fakes.upstream import Answer, FakeUpstream, Gate, streamed
from tests.gateway.upstream_calls import answer_of, events_of, work


async def test_connection_is_closed_when_the_iterator_is_closed(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """An abort reaches the upstream in the middle of its answer."""
    gate = Gate()
    upstream.script = lambda call: Answer([*streamed(["a"])[:2], gate])
    async with aclosing(cast("Any", backend.stream(work()))) as events:
        assert await anext(events) == Delta(0, "a")
    assert await asyncio.to_thread(upstream.left_early.acquire, timeout=5)
    gate.open()


async def test_connection_is_closed_when_the_reader_is_cancelled(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """A cancelled task gives its connection up while it waits for more."""
    gate = Gate()
    upstream.script = lambda call: Answer([gate])
    reading = asyncio.create_task(events_of(backend))
    assert await asyncio.to_thread(gate.reached.wait, 5)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await asyncio.to_thread(upstream.left_early.acquire, timeout=5)
    gate.open()


async def test_connection_serves_again_when_an_answer_was_complete(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """One connection carries request after request."""
    for _ in range(3):
        await events_of(backend)
    assert upstream.num_connections == 1


async def test_answer_ends_when_the_server_keeps_the_stream_open_after_done(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """``[DONE]`` is the end, whatever the transport does after it."""
    gate = Gate()
    upstream.script = lambda call: Answer([*streamed(["a"]), gate])
    assert (await answer_of(backend)).text == "a"
    gate.open()
