"""Only complete answers are stored, and one answer serves all who ask at once (field case F05)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.contract.client import parse_stream, until
from tests.contract.conftest import Relay
from tests.contract.stack import Stack
from tests.fakes.upstream import (
    DONE,
    Answer,
    FakeUpstream,
    Gate,
    event,
    refusal,
    streamed,
    whole,
)

PROMPT = "Recite ten lines about snow."
LINES = [f"line {k} of snow\n" for k in range(10)]
FULL = Answer(streamed(LINES))
TEXT = "".join(LINES)
FAULT = {"error": {"message": "scripted", "type": "server_error", "param": None, "code": None}}


def stored(relay: Relay) -> list[dict[str, object]]:
    return relay.entries(namespace=relay.http.headers["x-strata-namespace"])


def assert_repeat_is_new_and_then_hits(relay: Relay, upstream: FakeUpstream) -> None:
    """After something incomplete a repeat reaches the model; only after it a repeat hits."""
    assert stored(relay) == []
    upstream.script = lambda call: FULL
    num_calls = len(upstream.calls)
    repeat = relay.stream(PROMPT)
    assert (repeat.cache, repeat.text) == ("miss", TEXT)
    assert len(upstream.calls) == num_calls + 1
    until(lambda: relay.lookup(relay.body(PROMPT))["outcome"] == "exact")
    hit = relay.stream(PROMPT)
    assert (hit.cache, hit.text) == ("exact", TEXT)
    assert len(upstream.calls) == num_calls + 1


@contextmanager
def reading(relay: Relay, num_deltas: int) -> Iterator[httpx.Response]:
    """Read so many deltas of a stream and leave."""
    with relay.opened(PROMPT) as response:
        lines = response.iter_lines()
        for _ in range(num_deltas):
            next(line for line in lines if '"content":"line' in line.replace('": "', '":"'))
        yield response


def test_nothing_is_stored_when_the_client_leaves(relay: Relay, upstream: FakeUpstream) -> None:
    """A client that closes after 3 of 10 deltas aborts the upstream and leaves nothing."""
    gate = Gate()
    pieces = streamed(LINES)
    upstream.script = lambda call: Answer([*pieces[:4], gate, *pieces[4:]])
    with reading(relay, 3):
        pass
    assert upstream.left_early.acquire(timeout=10)
    gate.open()
    assert_repeat_is_new_and_then_hits(relay, upstream)


def test_upstream_is_left_when_a_waiting_client_leaves(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """A client of a whole answer that gives up before it comes aborts it too."""
    gate = Gate()
    upstream.script = lambda call: Answer([*streamed(LINES)[:4], gate])
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{relay.url}/v1/chat/completions",
            json=relay.body(PROMPT),
            headers=dict(relay.http.headers),
            timeout=1,
            trust_env=False,
        )
    assert upstream.left_early.acquire(timeout=10)
    gate.open()
    assert_repeat_is_new_and_then_hits(relay, upstream)


BROKEN = {
    "closed after 4 deltas": Answer(streamed(LINES)[:5], ending="cut"),
    "closed after the finish": Answer(streamed(LINES)[:12], ending="cut"),
    "ended after 4 deltas": Answer(streamed(LINES)[:5]),
    "done without a finish": Answer([*streamed(LINES)[:5], DONE]),
    "an error event": Answer([*streamed(LINES)[:5], event(FAULT), DONE]),
    "broken JSON": Answer([*streamed(LINES)[:5], b"data: {\n\n", DONE]),
}


@pytest.mark.parametrize("ending", BROKEN)
@pytest.mark.parametrize("stream", [True, False])
def test_nothing_is_stored_when_the_upstream_breaks_off(
    relay: Relay, upstream: FakeUpstream, ending: str, stream: bool
) -> None:
    """The client is told, no finish is made up, and nothing of it is kept."""
    upstream.script = lambda call: BROKEN[ending]
    if stream:
        broken = relay.stream(PROMPT)
        assert all(reason is None for reason in broken.finish_reasons)
        assert any("error" in chunk for chunk in broken.chunks)
    else:
        response = relay.chat(PROMPT)
        assert response.status_code == 502
        assert response.json()["error"]["message"]
    assert_repeat_is_new_and_then_hits(relay, upstream)


@pytest.mark.parametrize("status", [400, 429, 500, 503])
@pytest.mark.parametrize("stream", [True, False])
def test_error_is_relayed_and_not_stored_when_the_upstream_refuses(
    relay: Relay, upstream: FakeUpstream, status: int, stream: bool
) -> None:
    """Status, body and retry time are the upstream's, in both modes, as JSON."""
    upstream.script = lambda call: refusal(status, FAULT, retry_after="3")
    response = relay.chat(PROMPT, stream=stream)
    assert response.status_code == status
    assert response.json() == FAULT
    assert response.headers["retry-after"] == "3"
    assert_repeat_is_new_and_then_hits(relay, upstream)


def test_filtered_answer_is_relayed_and_not_stored(relay: Relay, upstream: FakeUpstream) -> None:
    """Only ``stop``, ``tool_calls`` and ``length`` are complete."""
    upstream.script = lambda call: Answer(streamed(LINES[:2], finish="content_filter"))
    response = relay.answer(PROMPT)
    assert response.json()["choices"][0]["finish_reason"] == "content_filter"
    assert_repeat_is_new_and_then_hits(relay, upstream)


def test_tool_calls_are_replayed_when_the_answer_was_stored(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """Tool calls come back from the cache as they came from the upstream, in both modes."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "雪"}'}}
    upstream.script = lambda _: whole("", finish="tool_calls", tool_calls=[call])
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    first = relay.seed(PROMPT, tools=tools).json()["choices"]
    hit = relay.answer(PROMPT, tools=tools)
    assert hit.headers["x-strata-cache"] == "exact"
    assert hit.json()["choices"] == first
    assert first[0]["message"]["tool_calls"] == [call]
    assert first[0]["finish_reason"] == "tool_calls"
    stream = relay.stream(PROMPT, tools=tools)
    assert stream.cache == "exact"
    [made] = [made for delta in stream.deltas for made in delta.get("tool_calls") or []]
    assert made == {"index": 0, **call}
    assert stream.finish_reasons[-1] == "tool_calls"


def test_second_client_gets_all_when_the_first_of_two_leaves(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """An answer that two wait for goes on when the one who started it leaves."""
    gate = Gate()
    pieces = streamed(LINES)
    upstream.script = lambda call: Answer([*pieces[:4], gate, *pieces[4:]])
    with ExitStack() as staying:
        with relay.opened(PROMPT) as first:
            second = staying.enter_context(relay.opened(PROMPT))
            assert "x-strata-coalesced" not in first.headers
            assert second.headers["x-strata-coalesced"] == "1"
        gate.open()
        body = second.read()
    assert parse_stream(200, second.headers, body).text == TEXT
    assert len(upstream.calls) == 1
    assert not upstream.left_early.acquire(blocking=False)


def test_upstream_is_called_once_when_identical_requests_are_in_flight(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """Twelve at once, streamed and whole: one call and one answer; who waits says so."""
    gate = Gate()
    pieces = streamed(["one ", "answer"])
    upstream.script = lambda call: Answer([*pieces[:2], gate, *pieces[2:]])
    with ExitStack() as opened:
        streams = [opened.enter_context(relay.opened(PROMPT)) for _ in range(6)]
        shared = [stream.headers.get("x-strata-coalesced") for stream in streams]
        assert shared == [None, *["1"] * 5]
        with ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(relay.answer, PROMPT) for _ in range(6)]
            gate.open()
            wholes = [job.result() for job in jobs]
        texts = {parse_stream(200, one.headers, one.read()).text for one in streams}
    texts |= {one.json()["choices"][0]["message"]["content"] for one in wholes}
    assert texts == {"one answer"}
    assert len(upstream.calls) == 1
    for one in wholes:
        waited = one.headers.get("x-strata-coalesced") == "1"
        assert waited or one.headers["x-strata-cache"] in {"exact", "semantic"}


def test_client_gets_all_when_the_store_dies_in_the_middle(
    relay: Relay, relay_stack: Stack, upstream: FakeUpstream
) -> None:
    """A dead response store costs the write, never the answer; it comes back by itself."""
    gate = Gate()
    pieces = streamed(LINES)
    upstream.script = lambda call: Answer([*pieces[:4], gate, *pieces[4:]])
    with relay.opened(PROMPT) as response:
        assert gate.reached.wait(30)
        relay_stack.child("valkey").kill()
        gate.open()
        assert b"".join(response.iter_raw()).endswith(b"data: [DONE]\n\n")
    upstream.script = lambda call: FULL
    until(lambda: relay.stream(PROMPT).cache == "exact", what="healed")
    assert relay.stream(PROMPT).text == TEXT
