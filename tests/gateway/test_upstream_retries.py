"""Retries, replicas that fail, breakers and drain: all of it before the first byte."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from gateway.backends.base import Work
from gateway.backends.upstream import Retries, Timeouts, UpstreamBackend
from gateway.backends.upstream.policies import RoundRobin
from gateway.backends.upstream.replica import Replica
from gateway.backends.upstream.retry import retry_after_s
from gateway.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    UpstreamAuth,
    UpstreamStatus,
)
from semantic_layer import BreakerSettings
from tests.fakes.upstream import Answer, Call, FakeUpstream, Gate, refusal, streamed

BODY = {"model": "m", "messages": [{"role": "user", "content": "Say something."}]}
BUSY = {"error": {"message": "busy", "type": "server_error", "param": None, "code": None}}
AT_ONCE = Retries(2, backoff_s=0.001)
DROPPED = Answer([], ending="cut")
Open = Callable[..., UpstreamBackend]


@pytest.fixture
def upstreams() -> Iterator[list[FakeUpstream]]:
    """Two replicas of one engine."""
    with ExitStack() as running:
        yield [running.enter_context(FakeUpstream()) for _ in range(2)]


@pytest.fixture
async def opened(upstreams: list[FakeUpstream]) -> AsyncIterator[Open]:
    backends: list[UpstreamBackend] = []

    def open_backend(*fakes: FakeUpstream, **settings: Any) -> UpstreamBackend:
        first, *others = [fake.base_url for fake in fakes or upstreams]
        settings = {"policy": RoundRobin(), "retries": AT_ONCE, **settings}
        backends.append(UpstreamBackend("up", first, ["m"], replicas=others, **settings))
        return backends[-1]

    yield open_backend
    for backend in backends:
        await backend.close()


async def text_of(backend: UpstreamBackend, **body: Any) -> str:
    work = Work("r", "m", {**BODY, **body}, b"")
    return "".join([getattr(event, "text", "") async for event in backend.stream(work)])


def script(*answers: Answer) -> Callable[[Call], Answer]:
    """Give the answers in order, the last one for ever."""
    waiting = list(answers)
    return lambda call: waiting.pop(0) if len(waiting) > 1 else waiting[0]


FAILURES = {
    "dropped before the head": DROPPED,
    "502": refusal(502, BUSY),
    "503": refusal(503, BUSY),
    "504": refusal(504, BUSY),
    "429": refusal(429, BUSY),
    "503 with a short wait": refusal(503, BUSY, retry_after="0"),
    "dropped after the head": Answer(
        [], ending="cut", headers={"content-type": "text/event-stream"}
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_next_replica_answers_when_the_first_fails_before_a_byte(
    upstreams: list[FakeUpstream], opened: Open, failure: str
) -> None:
    """Whatever way the first one fails, the client sees a whole answer of the second."""
    first, second = upstreams
    first.script = script(FAILURES[failure])
    assert await text_of(opened()) == "ECHO:Say something."
    assert (len(first.calls), len(second.calls)) == (1, 1)


@pytest.mark.parametrize("failure", FAILURES)
async def test_same_replica_is_asked_again_when_it_is_the_only_one(
    upstreams: list[FakeUpstream], opened: Open, failure: str
) -> None:
    """A short trouble passes unseen."""
    first = upstreams[0]
    first.script = script(FAILURES[failure], FAILURES[failure], Answer(streamed(["ok"])))
    assert await text_of(opened(first)) == "ok"
    assert len(first.calls) == 3


@pytest.mark.parametrize(("status", "told"), [(401, 502), (403, 502)])
async def test_refused_key_is_final_too(
    upstreams: list[FakeUpstream], opened: Open, status: int, told: int
) -> None:
    """Another replica would refuse the same key."""
    upstreams[0].script = script(refusal(status, BUSY))
    with pytest.raises(UpstreamAuth) as caught:
        await text_of(opened())
    assert caught.value.status == told
    assert [len(fake.calls) for fake in upstreams] == [1, 0]


@pytest.mark.parametrize("status", [400, 404, 409, 422, 500, 501])
async def test_refusal_is_final_when_a_retry_could_not_help(
    upstreams: list[FakeUpstream], opened: Open, status: int
) -> None:
    """A request that is at fault itself is sent once."""
    upstreams[0].script = script(refusal(status, BUSY))
    with pytest.raises(UpstreamStatus) as caught:
        await text_of(opened())
    assert caught.value.status == status
    assert [len(fake.calls) for fake in upstreams] == [1, 0]


async def test_last_refusal_is_relayed_when_every_try_fails(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """The client learns what the upstream said, and when to come back."""
    for fake in upstreams:
        fake.script = script(refusal(429, BUSY, retry_after="33"))
    with pytest.raises(UpstreamStatus) as caught:
        await text_of(opened())
    assert (caught.value.status, caught.value.headers) == (429, {"retry-after": "33"})
    assert [len(fake.calls) for fake in upstreams] == [1, 1], "33 s is longer than a request waits"


async def test_answered_refusal_is_told_when_another_replica_is_dead(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """A 429 says more than a connection refused, whichever came last."""
    first, second = upstreams
    first.script = script(refusal(429, BUSY, retry_after="60"))
    second.script = script(DROPPED)
    with pytest.raises(UpstreamStatus):
        await text_of(opened())


async def test_resting_replica_is_spared_when_another_is_ready(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """Who asked for a pause gets no request until it is over."""
    upstreams[0].script = script(refusal(429, BUSY, retry_after="60"))
    backend = opened()
    for _ in range(4):
        assert await text_of(backend)
    assert [len(fake.calls) for fake in upstreams] == [1, 4]
    assert [each.state for each in backend.replicas] == ["resting", "ready"]


async def test_pause_is_as_long_as_asked_when_the_only_replica_is_busy(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """``Retry-After`` is waited for, as long as the settings allow."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    first = upstreams[0]
    first.script = script(refusal(503, BUSY, retry_after="3"), Answer(streamed(["ok"])))
    backend = opened(first, retries=Retries(2, backoff_s=0.001, max_wait_s=3.5))
    backend._dispatch._sleep = sleep
    assert await text_of(backend) == "ok"
    assert pauses == [3.0]


async def test_hang_is_a_timeout_and_no_retry_when_no_byte_comes(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """The client has waited long enough; the engine may be at work on it."""
    gate = Gate()
    upstreams[0].script = script(Answer([gate]))
    with pytest.raises(BackendTimeout):
        await text_of(opened(timeouts=Timeouts(first_byte_s=0.2)))
    gate.open()
    assert [len(fake.calls) for fake in upstreams] == [1, 0]


async def test_nothing_is_tried_again_when_a_byte_was_given(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """A comment is a byte too: the engine has begun."""
    upstreams[0].script = script(Answer([b": ping\n\n"], ending="cut"))
    with pytest.raises(BackendError):
        await text_of(opened())
    assert [len(fake.calls) for fake in upstreams] == [1, 0]


async def test_breaker_keeps_requests_away_when_a_replica_keeps_failing(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """After a few failures the others get everything at once."""
    first, second = upstreams
    first.script = script(refusal(503, BUSY))
    backend = opened()
    for _ in range(20):
        assert await text_of(backend)
    assert (len(first.calls), len(second.calls)) == (5, 20)
    assert backend.replicas[0].state == "down"
    assert "503" in backend.replicas[0].view.detail


async def test_request_fails_at_once_when_every_breaker_is_open(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """An engine that is down costs no waiting, and one that is back is noticed by a probe."""
    first = upstreams[0]
    first.script = script(DROPPED)
    backend = opened(first, retries=Retries(9, backoff_s=0.001))
    with pytest.raises(BackendUnavailable):
        await text_of(backend)
    num_calls = len(first.calls)
    assert num_calls == 5
    with pytest.raises(BackendUnavailable, match="is down"):
        await text_of(backend)
    assert len(first.calls) == num_calls
    first.script = script(Answer(streamed(["back"])))
    async with asyncio.timeout(10):
        while backend.replicas[0].state == "down":
            await asyncio.sleep(0.02)
    await backend.refresh()
    assert await text_of(backend) == "back"


async def test_replica_is_down_when_probes_find_it_gone(opened: Open) -> None:
    """Health is known without a request having to fail."""
    with FakeUpstream() as there:
        with FakeUpstream() as gone:
            backend = opened(gone, there)
            await backend.refresh()
            assert [each.state for each in backend.replicas] == ["ready", "ready"]
        for _ in range(5):
            await backend.refresh()
        assert [each.state for each in backend.replicas] == ["down", "ready"]
        assert await text_of(backend)
        health = await backend.health()
    assert health.ok
    assert [part.ok for part in health.each.values()] == [False, True]


async def test_drained_replica_gets_no_new_request_when_others_go_on(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """What is in flight on it is finished."""
    gate = Gate()
    upstreams[0].script = script(
        Answer([*streamed(["a", "b"])[:2], gate, *streamed(["a", "b"])[2:]])
    )
    backend = opened()
    running = asyncio.create_task(text_of(backend))
    assert await asyncio.to_thread(gate.reached.wait, 5)
    backend.replicas[0].is_drained = True
    for _ in range(3):
        await text_of(backend)
    assert [len(fake.calls) for fake in upstreams] == [1, 3]
    assert [each.in_flight for each in backend.replicas] == [1, 0]
    gate.open()
    assert await running == "ab"
    backend.replicas[1].is_drained = True
    with pytest.raises(BackendUnavailable, match="drained"):
        await text_of(backend)
    backend.replicas[0].is_drained = False
    assert await text_of(backend)


async def test_in_flight_is_counted_down_when_a_reader_leaves(
    upstreams: list[FakeUpstream], opened: Open
) -> None:
    """An abort frees its place, before the first byte and after."""
    backend = opened()
    for pieces in ([], streamed(["a"])[:2]):
        gate = Gate()
        for fake in upstreams:
            fake.script = script(Answer([*pieces, gate]))
        running = asyncio.create_task(text_of(backend))
        assert await asyncio.to_thread(gate.reached.wait, 5)
        assert sum(each.in_flight for each in backend.replicas) == 1
        running.cancel()
        await asyncio.wait([running])
        gate.open()
        assert sum(each.in_flight for each in backend.replicas) == 0


def test_half_open_replica_takes_one_probe_when_its_pause_is_over() -> None:
    """One request tests the water; the others stay away until it is back."""
    now = [0.0]
    replica = Replica(
        "http://x", breaker=BreakerSettings(failures=1, backoff_s=5), clock=lambda: now[0]
    )
    with replica.judged() as verdict:
        verdict.failed("gone")
    assert replica.state == "down"
    now[0] = 5.0
    assert replica.state == "ready"
    with replica.judged() as verdict:
        assert replica.state == "down"
        verdict.alive()
    assert replica.state == "ready"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "²"}, None),
        ({}, None),
    ],
)
def test_wait_is_read_when_the_header_has_one_of_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    """Seconds, milliseconds or a date; nonsense is no wait."""
    assert retry_after_s(headers, now=60.0) == seconds


def test_pause_grows_and_is_spread_when_no_wait_was_asked() -> None:
    """Doubling, up to half of it off by chance; what would be too long is not waited for."""
    retries = Retries(backoff_s=1.0, max_wait_s=4.0)
    assert [retries.pause_s(round_, None, lambda: 0.0) for round_ in range(4)] == [1, 2, 4, None]
    assert retries.pause_s(0, None, lambda: 1.0) == 0.5
    assert retries.pause_s(0, 3.0) == 3.0
    assert retries.pause_s(0, 4.1) is None
