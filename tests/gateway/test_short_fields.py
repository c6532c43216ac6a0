"""What is no text for a model is short: names, ids, stop strings, metadata."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gateway.backends.sampling import refuse_unsupported
from gateway.errors import BadRequest
from gateway.wire.anthropic.request import MessagesRequest
from gateway.wire.completions import decode_completion
from gateway.wire.embeddings import decode_embeddings
from gateway.wire.openai import decode_chat
from gateway.wire.responses.request import ResponsesRequest
from gateway.wire.validation import MAX_SHORT, convert

LONG = "x" * (MAX_SHORT + 1)
USER = {"role": "user", "content": "Hi"}
CHAT = {"model": "m", "messages": [USER]}


def _chat(**fields: Any) -> None:
    decode_chat(msgspec.json.encode({**CHAT, **fields}))


def _completion(**fields: Any) -> None:
    decode_completion(msgspec.json.encode({"model": "m", "prompt": "Hi", **fields}))


def _embeddings(**fields: Any) -> None:
    decode_embeddings(msgspec.json.encode({"model": "m", "input": "Hi", **fields}))


def _responses(**fields: Any) -> None:
    convert({"model": "m", "input": "Hi", **fields}, ResponsesRequest)


def _messages(**fields: Any) -> None:
    convert({**CHAT, "max_tokens": 9, **fields}, MessagesRequest)


@pytest.mark.parametrize(
    ("read", "field", "value"),
    [
        (_chat, "stop", LONG),
        (_chat, "stop[1]", ["a", LONG]),
        (_chat, "user", LONG),
        (_chat, "model", LONG),
        (_chat, "service_tier", LONG),
        (_chat, "prompt_cache_key", LONG),
        (_chat, "safety_identifier", LONG),
        (_chat, "reasoning_effort", LONG),
        (_chat, "reasoning_effort", 3),
        (_chat, "tool_choice", LONG),
        (_chat, "metadata", {LONG: "a"}),
        (_chat, "metadata[...]", {"a": LONG}),
        (_chat, "messages[0].name", [{**USER, "name": LONG}]),
        (_completion, "stop", LONG),
        (_completion, "user", LONG),
        (_embeddings, "user", LONG),
        (_responses, "user", LONG),
        (_responses, "previous_response_id", LONG),
        (_responses, "reasoning.effort", {"effort": LONG}),
        (_messages, "stop_sequences[0]", [LONG]),
        (_messages, "metadata.user_id", {"user_id": LONG}),
    ],
)
def test_field_is_named_when_it_is_no_short_text(
    read: Callable[..., None], field: str, value: Any
) -> None:
    """Megabytes in a field that no model reads are refused before any work is done."""
    name = field.partition("[")[0].partition(".")[0]
    with pytest.raises(BadRequest) as caught:
        read(**{name: value})
    assert caught.value.param == field.replace("[...]", "")
    if value != 3:
        assert f"length <= {MAX_SHORT}" in caught.value.message


@pytest.mark.parametrize("stop", ["x" * MAX_SHORT, ["a", "b", "c", "d"]])
def test_stop_is_read_when_it_is_within_bounds(stop: Any) -> None:
    """The longest that is allowed, and the most."""
    _chat(stop=stop)
    _completion(stop=stop)


def test_unknown_effort_is_refused_when_the_model_is_local() -> None:
    """With the API's values; those pass, and an upstream's own are its own matter."""
    with pytest.raises(BadRequest, match="'banana' is none of none, minimal, low") as caught:
        refuse_unsupported({"reasoning_effort": "banana"})
    assert caught.value.param == "reasoning_effort"
    for effort in ("none", "minimal", "low", "medium", "high", "xhigh", None):
        refuse_unsupported({"reasoning_effort": effort})
    _chat(reasoning_effort="banana")
