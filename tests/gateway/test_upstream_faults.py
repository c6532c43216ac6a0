"""What the upstream backend makes of servers that refuse, break off or stay silent."""

import asyncio
import dataclasses
import socket
from typing import Any

import pytest

from gateway.backends.base import Delta
from gateway.backends.upstream import Retries, Timeouts, UpstreamBackend
from gateway.backends.upstream.policies import RoundRobin
from gateway.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    UpstreamAuth,
    UpstreamStatus,
)
from tests.fakes.upstream import DONE, Answer, FakeUpstream, Gate, event, refusal, streamed
from tests.gateway.upstream_calls import Backends, answer_of, nowhere, received_before, work

CUT_ANSWERS = {
    "cut after deltas": Answer(streamed(["a", "b"])[:3], ending="cut"),
    "cut after the finish": Answer(streamed(["a", "b"])[:4], ending="cut"),
    "ended without finish": Answer(streamed(["a", "b"])[:3]),
    "done without finish": Answer([*streamed(["a", "b"])[:3], DONE]),
    "an error in the stream": Answer(
        [*streamed(["a", "b"])[:3], event({"error": {"message": "out of memory"}}), DONE]
    ),
    "broken JSON": Answer([*streamed(["a", "b"])[:3], b'data: {"choices": [\n\n', DONE]),
    "not UTF-8": Answer([*streamed(["a", "b"])[:3], b'data: {"x": "\xff\xfe"}\n\n', DONE]),
}


@pytest.mark.parametrize("ending", CUT_ANSWERS)
async def test_answer_never_finishes_when_the_upstream_broke_off(
    upstream: FakeUpstream, backend: UpstreamBackend, ending: str
) -> None:
    """The deltas come, then an error, and no finish: nothing of it looks complete."""
    upstream.script = lambda call: CUT_ANSWERS[ending]
    events, error = await received_before(BackendError, backend)
    assert events == [Delta(0, "a"), Delta(0, "b")]
    assert error.status == 502


async def test_one_choice_missing_is_an_error_when_two_were_asked_for(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Every choice needs its finish, also one that never began."""
    upstream.script = lambda call: Answer(streamed(["a"]))
    await received_before(BackendError, backend, n=2)


@pytest.mark.parametrize(
    "answer",
    [
        Answer([b"<html>busy</html>"], headers={"content-type": "text/html"}),
        Answer([b"[1, 2"], headers={"content-type": "application/json"}),
        Answer([b'{"choices": 3}'], headers={"content-type": "application/json"}),
        Answer([b'{"choices": []}'], headers={"content-type": "application/json"}),
        Answer([event({"choices": [{"delta": {"content": [1]}}]})]),
        Answer([event({"choices": [{"delta": {"tool_calls": "x"}}]})]),
        Answer([event({"choices": [{"delta": {}, "logprobs": {"content": [{"token": 1}]}}]})]),
        Answer([], status=302, headers={"location": "/elsewhere"}),
    ],
)
async def test_answer_is_an_error_when_it_is_no_chat_completion(
    upstream: FakeUpstream, backend: UpstreamBackend, answer: Answer
) -> None:
    """Whatever else a server may send is named an upstream fault, never a crash."""
    upstream.script = lambda call: answer
    events, error = await received_before(BackendError, backend)
    assert events == []
    assert type(error) is BackendError


async def test_refusal_is_relayed_when_the_upstream_answers_with_an_error(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Status and body as given; of the headers only rate limits and retry times."""
    body = {"error": {"message": "slow down", "type": "rate_limit", "code": "rl", "param": None}}
    upstream.script = lambda call: refusal(
        429, body, retry_after="7", x_ratelimit_limit_requests="10", set_cookie="a=b"
    )
    _, error = await received_before(UpstreamStatus, backend)
    assert (error.status, error.envelope()) == (429, body)
    assert error.headers == {"retry-after": "7", "x-ratelimit-limit-requests": "10"}


@pytest.mark.parametrize("status", [401, 403, 407])
async def test_own_key_is_named_when_the_upstream_refuses_it(
    upstream: FakeUpstream, backend: UpstreamBackend, status: int
) -> None:
    """A client whose key is right is not told that it is wrong."""
    upstream.script = lambda call: refusal(status, {"error": {"message": "Incorrect API key"}})
    _, error = await received_before(UpstreamAuth, backend)
    assert (error.status, error.code) == (502, "upstream_auth")
    assert "gateway's key" in error.message


async def test_refusal_is_relayed_when_the_key_was_the_clients(
    upstream: FakeUpstream, backends: Backends
) -> None:
    """Who sends credentials for the upstream is told what it says of them."""
    backend = backends(upstream.base_url, relay_headers=["Authorization"])
    upstream.script = lambda call: refusal(401, {"error": {"message": "Incorrect API key"}})
    asked = dataclasses.replace(work(), headers={"authorization": "Bearer mine"})
    with pytest.raises(UpstreamStatus) as caught:
        await anext(aiter(backend.stream(asked)))
    assert caught.value.status == 401


@pytest.mark.parametrize(
    ("body", "message"),
    [({"detail": "no such route"}, "no such route"), ([1], "[1]"), ({"error": "bad"}, "bad")],
)
async def test_refusal_is_put_in_the_envelope_when_it_comes_in_another_shape(
    upstream: FakeUpstream, backend: UpstreamBackend, body: Any, message: str
) -> None:
    """Clients always find ``error.message``."""
    upstream.script = lambda call: refusal(500, body)
    _, error = await received_before(UpstreamStatus, backend)
    assert error.status == 500
    assert message in error.envelope()["error"]["message"]


async def test_envelope_is_whole_when_the_upstream_leaves_fields_out(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """What it says stays, its own fields too; what it does not say is null."""
    upstream.script = lambda call: refusal(500, {"error": {"message": "boom", "trace": 7}, "id": 1})
    _, error = await received_before(UpstreamStatus, backend)
    assert error.envelope() == {
        "error": {
            "message": "boom", "type": "server_error", "param": None, "code": None, "trace": 7,
        },
        "id": 1,
    }  # fmt: skip


async def test_status_is_taken_from_the_error_when_it_opens_the_stream(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Servers that report a bad request inside a 200 stream still give the client a 400."""
    fault = {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}
    upstream.script = lambda call: Answer([event({"error": fault}), DONE])
    _, error = await received_before(UpstreamStatus, backend)
    assert (error.status, error.envelope()) == (400, {"error": fault})


async def test_backend_is_unavailable_when_nobody_listens(backends: Backends) -> None:
    """A refused connection is a 503 that names the upstream."""
    answered: list[tuple[str, str]] = []
    backend = backends(
        nowhere(), retries=Retries(0), on_answer=lambda *answer: answered.append(answer)
    )
    _, error = await received_before(BackendUnavailable, backend)
    assert "stub" in error.message
    assert answered == [("stub", "unreachable")]
    assert not (await backend.health()).ok


async def test_next_replica_answers_when_the_first_gives_no_byte(
    upstream: FakeUpstream, backends: Backends
) -> None:
    """Refused and dropped connections move on to the next address, each tried once."""
    dropped: list[int] = []

    async def drop(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dropped.append(1)
        writer.close()

    async with await asyncio.start_server(drop, "127.0.0.1", 0) as dropping:
        port = dropping.sockets[0].getsockname()[1]
        others = [f"http://127.0.0.1:{port}/v1", upstream.base_url]
        backend = backends(nowhere(), replicas=others, policy=RoundRobin())
        assert (await answer_of(backend)).text == "ECHO:Say something."
        assert (await backend.health()).ok
    assert dropped == [1, 1]  # the chat request, and the probe of health
    assert len(upstream.calls) == 1


async def test_nothing_is_retried_when_a_byte_was_given(
    upstream: FakeUpstream, backends: Backends
) -> None:
    """After the first byte a second try could say something else."""
    upstream.script = lambda call: Answer(streamed(["a"])[:2], ending="cut")
    backend = backends(upstream.base_url, replicas=[upstream.base_url])
    await received_before(BackendError, backend)
    assert len(upstream.calls) == 1


@pytest.mark.parametrize("given", [0, 2])
async def test_silence_is_a_timeout_when_it_lasts_too_long(
    upstream: FakeUpstream, backends: Backends, given: int
) -> None:
    """Before the first byte and between bytes; the connection is given up."""
    gate = Gate()
    upstream.script = lambda call: Answer([*streamed(["a"])[:given], gate])
    backend = backends(upstream.base_url, timeouts=Timeouts(first_byte_s=0.2, idle_s=0.2))
    events, _ = await received_before(BackendTimeout, backend)
    assert len(events) == given // 2
    assert await asyncio.to_thread(upstream.left_early.acquire, timeout=5)
    gate.open()


async def test_headers_alone_are_waited_for_when_a_server_accepts_and_is_silent(
    backends: Backends,
) -> None:
    """A server that never answers is a timeout, not a hang."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        backend = backends(f"http://127.0.0.1:{port}/v1", timeouts=Timeouts(first_byte_s=0.2))
        await received_before(BackendTimeout, backend)
