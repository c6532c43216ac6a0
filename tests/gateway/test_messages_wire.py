"""Anthropic's request as a chat body: what becomes what, and what is refused."""

from typing import Any

import msgspec
import pytest

from gateway.errors import BadRequest
from gateway.wire.anthropic.chat import decode_messages
from gateway.wire.openai import check_chat
from semantic_layer import CacheQuery
from semantic_layer.canonical import exact_key

HI = {"role": "user", "content": "Hi"}
CALL = {"type": "tool_use", "id": "k", "name": "f", "input": {}}
CALLED: dict[str, Any] = {"role": "assistant", "content": [CALL]}
RESULT = {"type": "tool_result", "tool_use_id": "k"}


def asked(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 5, "messages": [HI], **fields}


def translated(**fields: Any) -> dict[str, Any]:
    return decode_messages(msgspec.json.encode(asked(**fields))).body


def key(body: dict[str, Any]) -> str:
    return exact_key(CacheQuery("t", "m", "f", body))


@pytest.mark.parametrize(
    ("fields", "chat"),
    [
        ({}, {}),
        ({"temperature": 0.5, "top_p": 0.5, "top_k": 3}, None),
        ({"stop_sequences": ["a", "b"]}, {"stop": ["a", "b"]}),
        ({"stop_sequences": []}, {}),
        ({"metadata": {"user_id": "u"}}, {"user": "u"}),
        ({"service_tier": "standard_only"}, {"service_tier": "default"}),
        ({"thinking": {"type": "disabled"}}, {}),
        ({"thinking": {"type": "adaptive"}}, {"thinking": {"type": "adaptive"}}),
        ({"output_config": {"effort": "low"}}, {"reasoning_effort": "low"}),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "output",
                        "schema": {"type": "object"},
                        "strict": True,
                    },
                }
            },
        ),
        ({"cache_control": {"type": "ephemeral"}, "stream": None}, {}),
        ({"context_management": {"edits": []}}, {}),
        ({"unheard_of": 1}, {"unheard_of": 1}),
    ],
)
def test_option_becomes_chats_own_where_it_means_the_same(
    fields: dict[str, Any], chat: dict[str, Any] | None
) -> None:
    """Each field has its counterpart, travels on, or has no meaning here."""
    expected = fields if chat is None else chat
    assert translated(**fields) == {"model": "m", "max_tokens": 5, "messages": [HI], **expected}


TOOL = {
    "name": "f",
    "description": "d",
    "input_schema": {"type": "object"},
    "cache_control": {"type": "ephemeral"},
}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
}


@pytest.mark.parametrize(
    ("choice", "chat"),
    [
        (None, {}),
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        (
            {"type": "tool", "name": "f"},
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        ),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
    ],
)
def test_tools_become_functions(choice: Any, chat: dict[str, Any]) -> None:
    """Tools and the choice among them are chat's; prompt-cache marks are not part of them."""
    body = translated(tools=[TOOL, {**TOOL, "type": "custom"}], tool_choice=choice)
    assert body["tools"] == [CHAT_TOOL, CHAT_TOOL]
    assert {name: body[name] for name in body if "tool_c" in name} == chat


def test_turns_become_chat_messages_when_they_hold_tools_and_thoughts() -> None:
    """Calls, results, thinking and images stand where chat has them; nothing is lost."""
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "Look", "cache_control": {}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "k", "name": "f", "input": {"ü": [1, None]}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "k", "content": "17"},
                {
                    "type": "tool_result",
                    "tool_use_id": "k",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no"}],
                },
                {"type": "text", "text": "And?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="},
                },
            ],
        },
    ]
    system = [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    read = decode_messages(msgspec.json.encode(asked(messages=turns, system=system)))
    assert read.body["messages"] == [
        {"role": "system", "content": system},
        {"role": "user", "content": "Look"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": "k",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"ü": [1, null]}'},
                }
            ],
            "reasoning_content": "Hm.",
        },
        {"role": "tool", "tool_call_id": "k", "content": "17"},
        {
            "role": "tool",
            "tool_call_id": "k",
            "content": [{"type": "text", "text": "Error: "}, {"type": "text", "text": "no"}],
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "And?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
            ],
        },
    ]
    assert len(read.origins) == len(read.body["messages"])
    check_chat(read.body)


def test_results_may_come_in_two_turns_when_both_follow_their_calls() -> None:
    """The user's turns in a row are one."""
    both = {"role": "assistant", "content": [*CALLED["content"], {**CALL, "id": "l"}]}
    results = [turn({**RESULT, "tool_use_id": id_})["messages"][0] for id_ in ("l", "k")]
    body = translated(messages=[HI, both, *results])
    assert [message.get("tool_call_id") for message in body["messages"]] == [None, None, "l", "k"]


@pytest.mark.parametrize("content", ["1, 2,", [{"type": "text", "text": "1, 2,"}]])
def test_answer_is_to_go_on_when_its_beginning_is_given(content: Any) -> None:
    """A last turn of the assistant is no turn of the past: another request, in engines' words."""
    body = translated(messages=[HI, {"role": "assistant", "content": content}])
    assert body["continue_final_message"] is True
    assert body["add_generation_prompt"] is False
    assert "continue_final_message" not in translated(messages=[HI])


def test_key_is_chats_when_the_meaning_is_equal() -> None:
    """One question asked through either API finds the other's answer."""
    chat = {
        "model": "m",
        "messages": [{"role": "system", "content": "S"}, HI],
        "max_completion_tokens": 5,
        "temperature": 0,
        "stop": ["x"],
        "tools": [CHAT_TOOL],
    }
    assert key(translated(system="S", temperature=0, stop_sequences=["x"], tools=[TOOL])) == key(
        chat
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"top_k": 5},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000},
        {"max_tokens": 6},
        {"system": "S"},
        {"stop_sequences": ["x"]},
        {"output_config": {"effort": "high"}},
        {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"unheard_of": 1},
    ],
)
def test_key_changes_with_what_can_change_the_answer(fields: dict[str, Any]) -> None:
    """No field with a say in the answer is left out of the key."""
    assert key(translated(**fields)) != key(translated())


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": True},
        {"metadata": {"user_id": "u"}},
        {"service_tier": "auto"},
        {"cache_control": {"type": "ephemeral"}},
        {"system": []},
        {"thinking": {"type": "disabled"}},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "x"}}],
                }
            ]
        },
    ],
)
def test_key_stays_when_only_the_transport_differs(fields: dict[str, Any]) -> None:
    """Accounting, streaming and prompt-cache marks cannot change an answer of ours."""
    assert key(translated(**fields)) == key(translated())


def turn(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(blocks)}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 1.5}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"stop_sequences": [""]}, "stop_sequences[0]"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking.budget_tokens"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"container": "c"}, "container"),
        (turn({"type": "text"}), "messages[0].content[0].text"),
        (turn({"type": "video"}), "messages[0].content[0].type"),
        (turn({"type": "image", "source": {}}), "messages[0].content[0].source"),
        (turn({"type": "document", "source": {"type": "x"}}), "messages[0].content[0].source"),
        (turn({"type": "tool_result", "tool_use_id": ""}), "messages[0].content[0].tool_use_id"),
        (turn({"type": "tool_result"}), "messages[0].content[0].tool_use_id"),
        (
            {"messages": [HI, CALLED, *turn({**RESULT, "content": [1]})["messages"]]},
            "messages[2].content[0].content[0]",
        ),
        (turn(RESULT), "messages[0].content[0].tool_use_id"),
        (
            {"messages": [HI, CALLED, *turn({**RESULT, "tool_use_id": "other"})["messages"]]},
            "messages[2].content[0].tool_use_id",
        ),
        ({"messages": [HI, CALLED, HI]}, "messages[1].content[0]"),
        (
            {"messages": [HI, CALLED, HI, {"role": "assistant", "content": "x"}]},
            "messages[1].content[0]",
        ),
        ({"messages": [HI, {"role": "assistant", "content": "So "}]}, "messages[1].content"),
        (
            turn({"type": "tool_use", "id": "k", "name": "f"}, role="assistant"),
            "messages[0].content[0].input",
        ),
        ({"strata": {"nope": 1}}, "strata.nope"),
    ],
)
def test_bad_request_names_its_field(fields: dict[str, Any], param: str) -> None:
    """P07: one clear error, with the field as the caller wrote it."""
    with pytest.raises(BadRequest) as caught:
        translated(**fields)
    assert caught.value.param == param
