"""Fields of the Messages and Responses APIs are in the key exactly when a model sees them.

The fields come from the SDKs' own types, so a field that an API adds is covered when its SDK is
renewed: it travels on and parts the keys, unless it is named here as one that no model sees.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from typing import Any, get_type_hints

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsBase as BetaMessages
from anthropic.types.message_create_params import MessageCreateParamsBase as Messages
from openai.types.responses.response_create_params import ResponseCreateParamsBase as Responses

from gateway.errors import BadRequest
from gateway.wire.anthropic.chat import decode_messages
from gateway.wire.responses.chat import chat_body
from gateway.wire.responses.items import input_items
from gateway.wire.responses.request import ResponsesRequest, check_responses
from gateway.wire.validation import convert, decode_object
from semantic_layer import CacheQuery
from semantic_layer.canonical import TRANSPORT_ONLY, exact_key
from tests.semantic_layer.test_key_fields import values

MOST = 400  # values tried of one field
TOOLS = {
    "messages": [{"name": "a", "input_schema": {"type": "object"}}],
    "responses": [{"type": "function", "name": "a", "parameters": {"type": "object"}}],
}
BASES: dict[str, dict[str, Any]] = {
    "messages": {
        "model": "m", "max_tokens": 2000, "tools": TOOLS["messages"],
        "messages": [{"role": "user", "content": "base"}],
    },
    "responses": {"model": "m", "input": "base", "tools": TOOLS["responses"]},
}  # fmt: skip
UNSEEN = {  # no model behind this gateway ever sees them
    "messages": {
        *("cache_control", "context_management", "diagnostics", "metadata", "service_tier"),
        *("speed", "user_profile_id", "workspace_id"),
    },
    "responses": {
        *("access_programs", "background", "background_options", "context_management", "image"),
        *("max_tool_calls", "metadata", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "safety_identifier", "service_tier", "store", "stream_options"),
        *("truncation", "user"),
    },
}
IN_PARTS = {  # objects of which only some fields reach a model
    *("messages", "system", "tools", "tool_choice", "thinking", "output_config", "stop_sequences"),
    *("input", "instructions", "text", "reasoning", "include", "top_logprobs"),
}


def messages_body(data: bytes) -> dict[str, Any]:
    return decode_messages(data).body


def responses_body(data: bytes) -> dict[str, Any]:
    tree = decode_object(data)
    request = convert(tree, ResponsesRequest)
    check_responses(request, tree)
    return chat_body(request, tree, [], input_items(request.input))[0]


READ: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "messages": messages_body,
    "responses": responses_body,
}
CASES = [
    (api, name, hint)
    for api, params in (
        ("messages", Messages), ("messages", BetaMessages), ("responses", Responses)
    )
    for name, hint in get_type_hints(params, include_extras=True).items()
    if name not in {"model", "previous_response_id"}
]  # fmt: skip


def seen(api: str, **fields: Any) -> dict[str, Any]:
    """Return what a model is asked."""
    body = READ[api](json.dumps({**BASES[api], **fields}).encode())
    return {name: value for name, value in body.items() if name not in TRANSPORT_ONLY}


def key(body: dict[str, Any]) -> str:
    return exact_key(CacheQuery("t", "m", "f", body))


@pytest.mark.parametrize(("api", "name", "hint"), CASES, ids=lambda value: str(value)[:30])
def test_field_is_in_the_key_exactly_when_a_model_sees_it(api: str, name: str, hint: Any) -> None:
    """Each value parts the keys or is refused; those of unseen fields make no difference."""
    base = key(seen(api))
    tried: dict[str, list[Any]] = defaultdict(list)
    for value in islice(values(hint), MOST):
        try:
            body = seen(api, **{name: value})
        except BadRequest:
            continue
        tried[key(body)].append(value)
    if name in UNSEEN[api]:
        assert set(tried) <= {base}
    elif name not in IN_PARTS:
        assert base not in tried or tried[base] == [BASES[api].get(name)]
        assert all(len(alike) == 1 for alike in tried.values()), tried


@pytest.mark.parametrize(
    ("api", "one", "other"),
    [
        ("messages", {"thinking": {"type": "adaptive"}}, {}),
        (
            "messages",
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            {"thinking": {"type": "enabled", "budget_tokens": 1025}},
        ),
        ("messages", {"output_config": {"effort": "low"}}, {"output_config": {"effort": "high"}}),
        ("messages", {"stop_sequences": ["a"]}, {"stop_sequences": ["b"]}),
        ("messages", {"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "none"}}),
        ("messages", {"system": "a"}, {"system": "b"}),
        ("messages", {"unheard_of": 1}, {"unheard_of": 2}),
        ("responses", {"instructions": "a"}, {"instructions": "b"}),
        ("responses", {"text": {"verbosity": "low"}}, {"text": {"verbosity": "high"}}),
        ("responses", {"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "high"}}),
        ("responses", {"top_logprobs": 1}, {"top_logprobs": 2}),
        ("responses", {"include": ["message.output_text.logprobs"]}, {}),
        ("responses", {"text": {"format": {"type": "json_object"}}}, {}),
        ("responses", {"unheard_of": 1}, {}),
    ],
)
def test_keys_differ_when_what_a_model_sees_does(
    api: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    """Parts of objects that reach a model are in the key, and so are unknown fields."""
    assert key(seen(api, **one)) != key(seen(api, **other))


@pytest.mark.parametrize("name", ["container", "mcp_servers", "inference_geo"])
def test_field_is_refused_when_it_would_change_the_answer_elsewhere(name: str) -> None:
    """What only Anthropic's own service can do is never answered as if it had been done."""
    with pytest.raises(BadRequest, match=name):
        seen("messages", **{name: "x"})
