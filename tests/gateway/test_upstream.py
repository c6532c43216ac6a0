"""The upstream backend over real sockets, against a scripted server."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any, cast

import httpx
import pytest

from gateway.answer import Answer as Whole
from gateway.answer import Assembler
from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob, Usage, Work
from gateway.backends.upstream import Retries, Timeouts, UpstreamBackend
from gateway.backends.upstream.policies import RoundRobin
from gateway.errors import BackendError, BackendTimeout, BackendUnavailable, UpstreamStatus
from tests.fakes.upstream import (
    DONE,
    Answer,
    Call,
    FakeUpstream,
    Gate,
    chunk,
    event,
    refusal,
    split_at,
    streamed,
    usage,
    usage_chunk,
    whole,
)

MESSAGES = [{"role": "user", "content": "Say something."}]
Backends = Callable[..., UpstreamBackend]


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream() as fake:
        yield fake


@pytest.fixture
async def backends() -> AsyncIterator[Backends]:
    opened: list[UpstreamBackend] = []

    def open_backend(base_url: str, **settings: Any) -> UpstreamBackend:
        opened.append(UpstreamBackend("stub", base_url, ["stub-model"], **settings))
        return opened[-1]

    yield open_backend
    for backend in opened:
        await backend.close()


@pytest.fixture
def backend(upstream: FakeUpstream, backends: Backends) -> UpstreamBackend:
    return backends(upstream.base_url)


def work(**body: Any) -> Work:
    return Work("req-1", "stub-model", {"model": "stub-model", "messages": MESSAGES, **body}, b"")


async def events_of(backend: UpstreamBackend, **body: Any) -> list[Event]:
    return [event async for event in backend.stream(work(**body))]


async def answer_of(backend: UpstreamBackend, **body: Any) -> Whole:
    assembler = Assembler()
    for given in await events_of(backend, **body):
        assembler.add(given)
    assert assembler.answer is not None
    return assembler.answer


async def received_before(
    error: type[BaseException], backend: UpstreamBackend, **body: Any
) -> tuple[list[Event], Any]:
    """Collect what a generation gave before it raised."""
    events: list[Event] = []

    async def read() -> None:
        async for given in backend.stream(work(**body)):
            events.append(given)  # noqa: PERF401 - what came before the error is kept

    with pytest.raises(error) as caught:
        await read()
    return events, caught.value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}/v1"


async def test_text_is_whole_when_the_socket_is_flushed_at_every_byte(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """One event a character, the stream cut at each offset in turn: never a broken character."""
    pieces = streamed(list("晚安🌙café👩‍🚀"))
    length = len(b"".join(pieces))
    for offset in range(1, length):
        upstream.script = lambda call, at=offset: Answer(split_at(pieces, at))
        assert (await answer_of(backend)).text == "晚安🌙café👩‍🚀"
    upstream.script = lambda call: Answer([bytes([byte]) for byte in b"".join(pieces)])
    assert (await answer_of(backend)).text == "晚安🌙café👩‍🚀"


@pytest.mark.parametrize("text", ["🌙", "a🌙b👩‍🚀", "\ud83d", "x\ude00"])
async def test_characters_are_whole_when_deltas_cut_surrogate_pairs(
    upstream: FakeUpstream, backend: UpstreamBackend, text: str
) -> None:
    """Servers that cut UTF-16 in two are mended; what stays half becomes U+FFFD in the end."""
    units = text.encode("utf-16-le", "surrogatepass")
    halves = [
        units[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(units), 2)
    ]
    pieces = [
        b"data: " + json.dumps({"choices": [{"delta": {"content": half}}]}).encode() + b"\n\n"
        for half in halves
    ]
    upstream.script = lambda call: Answer([*pieces, chunk({}, finish="stop"), DONE])
    expected = units.decode("utf-16-le", "replace")
    assert (await answer_of(backend)).text == expected


async def test_body_passes_untouched_but_for_the_stream_fields(
    upstream: FakeUpstream, backends: Backends
) -> None:
    """Unknown fields reach the upstream; stream and usage are always asked for."""
    backend = backends(upstream.base_url, api_key="sk-secret")
    sent = {"temperature": 0, "x_unknown": {"a": [1, None]}, "seed": 7, "stream": False}
    await events_of(backend, **sent, stream_options={"x": 1})
    [call] = upstream.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == "Bearer sk-secret"
    assert call.headers["x-request-id"] == "req-1"
    assert call.body == {
        "model": "stub-model",
        "messages": MESSAGES,
        **sent,
        "stream": True,
        "stream_options": {"x": 1, "include_usage": True},
    }


async def test_no_key_is_sent_when_none_is_set(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """An upstream without a key gets no authorization header."""
    await events_of(backend)
    assert "authorization" not in upstream.calls[0].headers


async def test_events_follow_the_stream_when_the_upstream_streams(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Deltas in order, then one finish, then the usage; the empty role delta is no event."""
    upstream.script = lambda call: Answer(
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "a"}),
            chunk({"content": "b"}, finish="length"),
            usage_chunk(7, 2, cached=4),
            DONE,
        ]
    )
    assert await events_of(backend) == [
        Delta(0, "a"),
        Delta(0, "b"),
        Finish(0, "length"),
        Final(Usage(7, 2, 4)),
    ]


async def test_last_usage_counts_when_every_chunk_carries_one(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Running totals are not added up, and details may be null."""
    running = {"choices": [{"delta": {"content": "a"}}], "usage": usage(5, 1)}
    last = {"choices": [], "usage": {**usage(5, 2), "prompt_tokens_details": None}}
    upstream.script = lambda call: Answer(
        [event(running), event(running), chunk({}, finish="stop"), event(last), DONE]
    )
    assert (await answer_of(backend)).usage == Usage(5, 2, 0)


async def test_events_are_the_same_when_the_upstream_answers_whole(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """An upstream that ignores ``stream`` is understood."""
    upstream.script = lambda call: whole("你好🌙")
    assert await events_of(backend) == [
        Delta(0, "你好🌙"),
        Finish(0, "stop"),
        Final(Usage(5, 3, 0)),
    ]


async def test_tool_calls_are_put_together_when_they_come_in_deltas(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Arguments of several calls grow side by side, and equal those of a whole answer."""

    def call_delta(index: int, **fields: Any) -> bytes:
        return chunk({"tool_calls": [{"index": index, **fields}]})

    upstream.script = lambda call: Answer(
        [
            call_delta(0, id="c0", type="function", function={"name": "f", "arguments": ""}),
            call_delta(0, function={"arguments": '{"x":'}),
            call_delta(1, id="c1", type="function", function={"name": "g", "arguments": "{}"}),
            call_delta(0, function={"arguments": " 1}"}),
            chunk({}, finish="tool_calls"),
            DONE,
        ]
    )
    [choice] = (await answer_of(backend)).choices
    assert choice.tool_calls == [
        {
            "index": 0,
            "id": "c0",
            "type": "function",
            "function": {"name": "f", "arguments": '{"x": 1}'},
        },
        {"index": 1, "id": "c1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    calls = [{k: v for k, v in made.items() if k != "index"} for made in choice.tool_calls]
    upstream.script = lambda call: whole("", finish="tool_calls", tool_calls=calls)
    assert (await answer_of(backend)).choices == [choice]


async def test_refusal_and_unknown_fields_travel_on_when_deltas_carry_them(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """What we do not read is relayed in ``extra``."""
    upstream.script = lambda call: Answer(
        [
            chunk({"role": "assistant", "reasoning_content": "hm"}),
            chunk({"refusal": "No."}),
            chunk({}, finish="stop"),
            DONE,
        ]
    )
    assert (await events_of(backend))[:2] == [
        Delta(0, extra={"reasoning_content": "hm"}),
        Delta(0, refusal="No."),
    ]


async def test_logprobs_are_finite_when_the_upstream_sends_them(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Entries keep their bytes and alternatives; minus infinity becomes OpenAI's -9999."""
    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": None}
    worst = {"token": "b", "logprob": float("-inf"), "bytes": None}
    upstream.script = lambda call: Answer(
        [
            chunk({"content": "a"}, logprobs={"content": [{**entry, "top_logprobs": [worst]}]}),
            chunk({"content": "a"}, logprobs={"content": [entry]}),
            chunk({}, finish="stop", logprobs=None),
            DONE,
        ]
    )
    [choice] = (await answer_of(backend, logprobs=True)).choices
    first, second = choice.logprobs or []
    assert [top.logprob for top in first.top_logprobs] == [-9999.0]
    assert second == TokenLogprob("a", -0.5, [97], [])


async def test_every_choice_finishes_once_when_several_are_asked_for(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Choices may be mixed and a finish may be repeated."""
    upstream.script = lambda call: Answer(
        [
            chunk({"content": "b"}, index=1),
            chunk({"content": "a"}),
            chunk({}, index=1, finish="stop"),
            chunk({}, index=1, finish="stop"),
            chunk({"content": "a"}, finish=""),
            chunk({}, finish="length"),
            DONE,
        ]
    )
    answer = await answer_of(backend, n=2)
    assert [(choice.text, choice.finish_reason) for choice in answer.choices] == [
        ("aa", "length"),
        ("b", "stop"),
    ]


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


async def test_fingerprint_changes_when_model_or_address_changes() -> None:
    """The same upstream keeps its fingerprint over restarts; replicas are no part of it."""

    async def fingerprints(*args: Any, **settings: Any) -> set[str]:
        backend = UpstreamBackend(*args, **settings)
        await backend.close()
        return {info.fingerprint for info in backend.models()}

    one = await fingerprints("a", "http://x/v1", ["m"])
    assert one == await fingerprints("a", "http://x/v1/", ["m"], replicas=["http://y/v1"])
    others = [
        await fingerprints("b", "http://x/v1", ["m"]),
        await fingerprints("a", "http://z/v1", ["m"]),
        await fingerprints("a", "http://x/v1", ["n"]),
    ]
    assert len(one.union(*others)) == 4


async def test_models_are_listed_once_when_settings_repeat_them(backends: Backends) -> None:
    """Each model of the settings, owned by the upstream."""
    backend = UpstreamBackend("up", nowhere(), ["a", "b", "a"])
    assert [(info.model_id, info.owned_by) for info in backend.models()] == [
        ("a", "up"),
        ("b", "up"),
    ]
    await backend.close()
    await backend.close()


def test_fake_call_is_recorded_with_its_body(upstream: FakeUpstream) -> None:
    """The scripted server itself answers a plain client."""
    seen: list[Call] = []

    def script(call: Call) -> Answer:
        seen.append(call)
        return whole("ok")

    upstream.script = script
    reply = httpx.post(f"{upstream.base_url}/chat/completions", json={"messages": MESSAGES})
    assert reply.json()["choices"][0]["message"]["content"] == "ok"
    assert seen == upstream.calls
