"""A stop signal while a stream runs: no new work, the running one whole and kept, exit 0."""

import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.contract.client import until
from tests.contract.conftest import Relay, StartStack
from tests.contract.stack import Stack, upstream_toml
from tests.fakes.upstream import DONE, Answer, FakeUpstream, Gate, chunk, echo, in_two_parts

ASKED = "Tell me a long one."


def stop(stack: Stack) -> None:
    assert stack._process is not None
    stack.children()
    stack._process.send_signal(signal.SIGTERM)


def ready(stack: Stack) -> httpx.Response:
    return httpx.get(f"{stack.url}/health/ready", trust_env=False)


def relaying(start_stack: StartStack, upstream: FakeUpstream, drain_s: str) -> Stack:
    return start_stack(
        toml=upstream_toml(upstream.base_url),
        LOCAL__MODEL="none",
        SEMANTIC__ENABLED="false",
        DRAIN_S=drain_s,
    )


def test_a_stream_is_whole_and_stored_when_a_stop_signal_comes_meanwhile(
    start_stack: StartStack, upstream: FakeUpstream, clients: Callable[..., Relay]
) -> None:
    """Readiness is 503 at once, others are told to ask again, and the next start has the answer."""
    gate = Gate()
    upstream.script = lambda call: in_two_parts(gate)
    stack = relaying(start_stack, upstream, drain_s="60")
    caller = clients(stack, Relay)
    with caller.opened(ASKED) as response:
        lines = response.iter_lines()
        next(line for line in lines if "first" in line)
        assert ready(stack).status_code == 200
        stop(stack)
        until(lambda: ready(stack).status_code == 503, what="not ready")
        assert httpx.get(f"{stack.url}/health/live", trust_env=False).status_code == 200
        late = httpx.post(
            f"{stack.url}/v1/chat/completions", json=caller.body("Hi"), trust_env=False
        )
        assert late.status_code == 503
        assert late.json()["error"]["code"] == "stopping"
        assert late.headers["retry-after"] == "1"
        late = httpx.post(f"{stack.url}/v1/messages", json={}, trust_env=False)
        assert (late.status_code, late.json()["type"]) == (529, "error")
        gate.open()
        rest = "".join(lines)
    assert "last" in rest
    assert "[DONE]" in rest
    assert stack._process is not None
    assert stack._process.wait(10) == 0
    stack.assert_gone()
    upstream.script = echo
    stack.start()
    assert caller.answer(ASKED).headers["x-strata-cache"] == "exact"


def test_a_stream_is_cut_at_once_when_a_second_signal_comes(
    start_stack: StartStack, upstream: FakeUpstream, clients: Callable[..., Relay]
) -> None:
    """An operator in a hurry does not wait for the drain time."""
    gate = Gate()
    upstream.script = lambda call: Answer([chunk({"content": "first "}), gate, DONE])
    stack = relaying(start_stack, upstream, drain_s="600")
    caller = clients(stack, Relay)
    with caller.opened(ASKED) as response:
        lines = response.iter_lines()
        next(line for line in lines if "first" in line)
        stop(stack)
        until(lambda: ready(stack).status_code == 503, what="not ready")
        stop(stack)
        assert stack._process is not None
        assert stack._process.wait(10) == 0
        assert "stopping" in "".join(lines)
    gate.open()
    stack.assert_gone()


MESSAGES = [{"role": "user", "content": ASKED}]
DIALECTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": MESSAGES},
    "/v1/completions": {"prompt": ASKED},
    "/v1/responses": {"input": ASKED},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 9},
}
LIMITS = {7: "/v1/chat/completions", 8: "/v1/messages"}


def asked_of(path: str) -> dict[str, Any]:
    return {"model": "stub-model", **DIALECTS[path]}


def events_of(lines: Iterator[str]) -> list[Any]:
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [text if text == "[DONE]" else json.loads(text) for text in data]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_each_open_stream_ends_with_its_error_event_when_the_drain_time_is_over(
    start_stack: StartStack, upstream: FakeUpstream, number: signal.Signals
) -> None:
    """Every API in its own shape, whole answers by their status; no socket is cut in between."""
    gate = Gate()
    begun = [chunk({"role": "assistant", "content": "first "}), gate, DONE]
    upstream.script = lambda call: Answer(begun)
    is_patient = number == signal.SIGINT  # who presses Ctrl-C waits less than SIGTERM would
    stack = relaying(start_stack, upstream, drain_s="600" if is_patient else "0.5")
    with ExitStack() as opened, ThreadPoolExecutor(2) as threads:
        http = opened.enter_context(httpx.Client(base_url=stack.url, timeout=60, trust_env=False))
        whole = [
            threads.submit(http.post, path, json={**asked_of(path), "max_tokens": limit})
            for limit, path in LIMITS.items()
        ]
        streams = {}
        for path in DIALECTS:
            asked = {**asked_of(path), "stream": True}
            response = opened.enter_context(http.stream("POST", path, json=asked))
            streams[path] = response.iter_lines()
            next(line for line in streams[path] if "first" in line)
        until(
            lambda: set(LIMITS) <= {c.body.get("max_tokens") for c in upstream.calls}, what="asked"
        )
        assert stack._process is not None
        stack.children()
        stack._process.send_signal(number)
        ends = {path: events_of(lines) for path, lines in streams.items()}
        answers = [each.result(30) for each in whole]
        assert stack._process.wait(10) == 0
    gate.open()
    stack.assert_gone()
    *_, error, done = ends["/v1/chat/completions"]
    assert (error["error"]["code"], done) == ("stopping", "[DONE]")
    *_, error, done = ends["/v1/completions"]
    assert (error["error"]["code"], done) == ("stopping", "[DONE]")
    failed = ends["/v1/responses"][-1]
    assert failed["type"] == "response.failed"
    assert "stopping" in failed["response"]["error"]["message"]
    last = ends["/v1/messages"][-1]
    assert (last["type"], last["error"]["type"]) == ("error", "overloaded_error")
    assert [answer.status_code for answer in answers] == [503, 529]
    assert answers[0].json()["error"]["code"] == "stopping"
    assert answers[1].json()["type"] == "error"
    assert answers[0].headers["retry-after"] == "1"
