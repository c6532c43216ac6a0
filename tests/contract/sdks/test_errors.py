"""Refusals, cuts and clients that leave, as both vendors' SDKs meet them."""

import uuid
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.contract.sdks.vendors import Messages
from tests.fakes.upstream import Answer, FakeUpstream, Gate, refusal, streamed

LONG = "pebble " * 12_000 + "What is the secret word?"


@pytest.mark.parametrize("mode", ["ask", "stream"])
def test_too_long_a_prompt_is_a_bad_request(local: Any, kind: Any, mode: str) -> None:
    """P09: both modes say so before the first byte, and the next request is served."""
    error = (anthropic if kind is Messages else openai).BadRequestError
    with pytest.raises(error, match="8192"):
        getattr(local, mode)(LONG)
    assert local.ask("Say hi.")[0]


@pytest.mark.parametrize("mode", ["ask", "stream"])
def test_errors_are_the_sdks_own(
    relayed: Any, kind: Any, upstream: FakeUpstream, mode: str
) -> None:
    """What an upstream refuses with reaches the caller as the class for it."""
    sdk = anthropic if kind is Messages else openai
    for status, error in (
        (400, sdk.BadRequestError),
        (429, sdk.RateLimitError),
        (500, sdk.InternalServerError),
    ):
        body = {"error": {"message": f"no {status}", "type": "x", "param": None, "code": None}}
        upstream.script = lambda _, said=(status, body): refusal(*said, retry_after="0")
        with pytest.raises(error, match=f"no {status}"):
            getattr(relayed, mode)(f"Say {uuid.uuid4()}")


@pytest.mark.parametrize("status", [401, 403])
def test_callers_key_is_not_blamed_when_the_upstream_refuses_ours(
    relayed: Any, kind: Any, upstream: FakeUpstream, status: int
) -> None:
    """Only the operator can mend it: a 502 that says so, and no client throws its key away."""
    upstream.script = lambda _: refusal(status, {"error": {"message": "Incorrect API key"}})
    error = (anthropic if kind is Messages else openai).InternalServerError
    with pytest.raises(error, match="refuses the gateway's key") as caught:
        relayed.ask(f"Say {uuid.uuid4()}")
    assert caught.value.status_code == 502


def test_cut_answer_is_an_error_and_leaves_nothing(
    relayed: Any, kind: Any, upstream: FakeUpstream
) -> None:
    """A stream that breaks never looks complete, and the next caller gets a whole answer."""
    upstream.script = lambda _: Answer(streamed(["half an ", "answer"])[:2], ending="cut")
    if kind is Messages:
        with pytest.raises(anthropic.APIStatusError):
            relayed.stream("Cut?")
    else:
        with openai.OpenAI(**relayed.more) as client:
            told = list(client.responses.create(**relayed.fields("Cut?"), stream=True))
        assert told[-1].type == "response.failed"
        assert [event.type for event in told].count("response.failed") == 1
    upstream.script = lambda _: Answer(streamed(["whole"]))
    assert relayed.ask("Cut?")[0] == "whole"


@pytest.fixture
def gate() -> Iterator[Gate]:
    held = Gate()
    yield held
    held.open()


def test_client_that_leaves_aborts_the_upstream(
    relayed: Any, kind: Any, upstream: FakeUpstream, gate: Gate
) -> None:
    """Closing the SDK's stream early stops the work and stores nothing."""
    pieces = streamed(["one ", "two ", "three"])
    upstream.script = lambda _: Answer([*pieces[:2], gate, *pieces[2:]])
    if kind is Messages:
        with (
            anthropic.Anthropic(**relayed.more) as client,
            client.messages.stream(**relayed.fields("Leave?")) as stream,
        ):
            assert next(iter(stream.text_stream)) == "one "
    else:
        with (
            openai.OpenAI(**relayed.more) as other,
            other.responses.stream(**relayed.fields("Leave?")) as events,
        ):
            assert any(event.type.endswith("text.delta") for event in events)
    assert upstream.left_early.acquire(timeout=10)
    upstream.script = lambda _: Answer(streamed(["again"]))
    assert relayed.ask("Leave?")[0] == "again"
