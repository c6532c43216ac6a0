"""A stop signal while a stream runs: no new work, the running one whole and kept, exit 0."""

import signal
from collections.abc import Callable

import httpx

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
    gate.open()
    stack.assert_gone()
