"""OpenAI's Responses request as a chat body: what becomes what, and what is refused."""

from typing import Any

import pytest

from gateway.backends.base import Usage
from gateway.errors import BadRequest
from gateway.wire.openai import UsageBody, check_chat
from gateway.wire.responses.answer import usage_of
from gateway.wire.responses.chat import chat_body
from gateway.wire.responses.items import input_items
from gateway.wire.responses.request import ResponsesRequest, check_responses
from gateway.wire.validation import convert
from semantic_layer import CacheQuery
from semantic_layer.canonical import exact_key

HI = {"role": "user", "content": "Hi"}


def translated(before: Any = (), **fields: Any) -> dict[str, Any]:
    tree = {"model": "m", "input": "Hi", **fields}
    request = convert(tree, ResponsesRequest)
    check_responses(request, tree)
    body, origins = chat_body(request, tree, before, input_items(request.input))
    assert len(origins) == len(body["messages"])
    return body


def key(body: dict[str, Any]) -> str:
    return exact_key(CacheQuery("t", "m", "f", body))


SCHEMA = {"type": "object"}
TOOL = {"type": "function", "name": "f", "parameters": SCHEMA, "description": "d"}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": SCHEMA},
}


@pytest.mark.parametrize(
    ("fields", "chat"),
    [
        ({}, {}),
        ({"max_output_tokens": 5}, {"max_completion_tokens": 5}),
        ({"temperature": 0.5, "top_p": 0.5, "seed": 3}, None),
        ({"text": {"format": {"type": "text"}, "verbosity": "low"}}, {"verbosity": "low"}),
        (
            {"text": {"format": {"type": "json_object"}}},
            {"response_format": {"type": "json_object"}},
        ),
        (
            {
                "text": {
                    "format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}
                }
            },
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
                }
            },
        ),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
        ({"include": ["reasoning.encrypted_content"]}, {}),
        ({"tools": [TOOL]}, {"tools": [CHAT_TOOL]}),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "name": "f"}},
            {
                "tools": [CHAT_TOOL],
                "tool_choice": {"type": "function", "function": {"name": "f"}},
            },
        ),
        (
            {
                "tools": [TOOL],
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "required",
                    "tools": [{"type": "function", "name": "f"}],
                },
            },
            {
                "tools": [CHAT_TOOL],
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "required",
                        "tools": [{"type": "function", "function": {"name": "f"}}],
                    },
                },
            },
        ),
        ({"parallel_tool_calls": False, "service_tier": "flex", "user": "u"}, None),
        ({"store": False, "metadata": {"a": "b"}, "truncation": "auto", "stream_options": {}}, {}),
        ({"background": False, "conversation": None}, {"background": None}),
        ({"unheard_of": 1}, {"unheard_of": 1}),
    ],
)
def test_option_becomes_chats_own_where_it_means_the_same(
    fields: dict[str, Any], chat: dict[str, Any] | None
) -> None:
    """Each field has its counterpart, travels on, or has no meaning for a model."""
    expected = {k: v for k, v in (fields if chat is None else chat).items() if v is not None}
    assert translated(**fields) == {"model": "m", "messages": [HI], **expected}


def call(name: str, call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": "{}", "call_id": call_id}


def chat_call(name: str, call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def test_items_become_chat_messages_when_they_hold_calls_and_thoughts() -> None:
    """What the assistant did in a row is one message; outputs, images and files have theirs."""
    items = [
        {"role": "developer", "content": "D"},
        {"role": "user", "content": [{"type": "input_text", "text": "Look"}]},
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        call("f", "k"),
        call("g", "l"),
        {"type": "function_call_output", "call_id": "k", "output": "17"},
        {
            "type": "function_call_output",
            "call_id": "l",
            "output": [{"type": "input_text", "text": "18"}],
        },
        {"role": "assistant", "content": "So."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "And?"},
                {"type": "input_image", "image_url": "data:x", "detail": "low"},
                {"type": "input_file", "file_data": "data:y", "filename": "n"},
            ],
        },
    ]
    body = translated(input=items, instructions="I")
    assert body["messages"] == [
        {"role": "system", "content": "I"},
        {"role": "developer", "content": "D"},
        {"role": "user", "content": "Look"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [chat_call("f", "k"), chat_call("g", "l")],
        },
        {"role": "tool", "tool_call_id": "k", "content": "17"},
        {"role": "tool", "tool_call_id": "l", "content": "18"},
        {"role": "assistant", "content": "So."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "And?"},
                {"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}},
                {"type": "file", "file": {"file_data": "data:y", "filename": "n"}},
            ],
        },
    ]
    check_chat(body)


def test_calls_of_two_rounds_stay_apart() -> None:
    """A call after an output belongs to the next message."""
    output = {"type": "function_call_output", "call_id": "k", "output": "1"}
    roles = [
        message["role"]
        for message in translated(input=[HI, call("f", "k"), output, call("f", "l"), output])[
            "messages"
        ]
    ]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]


def test_key_is_chats_when_the_meaning_is_equal() -> None:
    """One question asked through either API finds the other's answer."""
    chat = {
        "model": "m",
        "messages": [{"role": "system", "content": "S"}, HI],
        "max_tokens": 5,
        "temperature": 0,
        "tools": [CHAT_TOOL],
    }
    asked = translated(instructions="S", max_output_tokens=5, temperature=0, tools=[TOOL])
    assert key(asked) == key(chat)


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": True},
        {"store": False},
        {"metadata": {"a": "b"}},
        {"user": "u"},
        {"safety_identifier": "u"},
        {"prompt_cache_key": "k"},
        {"service_tier": "flex"},
        {"truncation": "disabled"},
        {"input": [HI]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]},
    ],
)
def test_key_stays_when_only_the_transport_differs(fields: dict[str, Any]) -> None:
    """How a response is kept or sent cannot change it."""
    assert key(translated(**fields)) == key(translated())


@pytest.mark.parametrize(
    "fields",
    [
        {"instructions": "S"},
        {"max_output_tokens": 6},
        {"tools": [TOOL]},
        {"tools": [{**TOOL, "strict": True}]},
        {"top_logprobs": 1},
        {"text": {"verbosity": "low"}},
        {"text": {"format": {"type": "json_object"}}},
        {"reasoning": {"effort": "high"}},
        {"parallel_tool_calls": False},
        {"unheard_of": 1},
    ],
)
def test_key_changes_with_what_can_change_the_answer(fields: dict[str, Any]) -> None:
    """No field with a say in the answer is left out of the key."""
    asked = translated(**fields)
    assert key(asked) != key(translated())
    if "tools" in fields:
        assert key(asked) != key(translated(tools=[{**TOOL, "name": "g"}]))


def said(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"input": [{"role": role, "content": list(parts)}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"model": ""}, "model"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 2.5}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"truncation": "x"}, "truncation"),
        ({"background": True}, "background"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"input": [{"type": "web_search_call"}]}, "input[0].type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].arguments"),
        (
            {"input": [{"type": "function_call_output", "output": "x"}]},
            "input[0].call_id",
        ),
        (
            {"input": [{"type": "function_call_output", "call_id": "", "output": "x"}]},
            "input[0].call_id",
        ),
        ({"input": [{"type": "reasoning", "summary": 3.5}]}, "input[0].summary"),
        ({"input": [{"type": "reasoning", "content": [1]}]}, "input[0].content[0].text"),
        (said({"type": "input_text"}), "input[0].content[0]"),
        (said({"type": "video"}), "input[0].content[0].type"),
        (said({"type": "input_image", "file_id": "f"}), "input[0].content[0]"),
        (said("x"), "input[0].content[0]"),
        ({"strata": {"ttl": -1}}, "strata.ttl"),
    ],
)
def test_bad_request_names_its_field(fields: dict[str, Any], param: str) -> None:
    """P07: one clear error, with the field as the caller wrote it."""
    with pytest.raises(BadRequest) as caught:
        translated(**fields)
    assert caught.value.param == param


def test_further_counts_are_shown_when_an_upstream_gives_them() -> None:
    """Reasoning tokens are the upstream's own; what is no object is not read."""
    given = Usage(9, 7, 4, {"completion_tokens_details": {"reasoning_tokens": 5}})
    assert usage_of(given)["output_tokens_details"] == {"reasoning_tokens": 5}
    odd = Usage(9, 7, 4, {"completion_tokens_details": None, "prompt_tokens_details": 3})
    assert usage_of(odd)["output_tokens_details"] == {"reasoning_tokens": 0}
    assert usage_of(odd)["input_tokens_details"]["cached_tokens"] == 4
    assert UsageBody.of(odd)["prompt_tokens_details"] == {"cached_tokens": 4}
