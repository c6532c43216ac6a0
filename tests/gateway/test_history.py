"""Messages become what any template can render: nothing lost, nothing called None."""

from typing import Any

import pytest

from gateway.backends.history import read_history
from gateway.errors import BadRequest

CALL = {"id": "k1", "type": "function", "function": {"name": "stock", "arguments": "{}"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize("knows_tools", [True, False])
def test_parts_are_joined_in_order_when_content_is_a_list(knows_tools: bool) -> None:
    """A list of text parts is the string they spell, for every role."""
    parts = [{"type": "text", "text": "Repeat the "}, {"type": "text", "text": "code word."}]
    for role in ("system", "user", "assistant"):
        (message,) = read_history([{"role": role, "content": parts}], knows_tools=knows_tools)
        assert message == {"role": role, "content": "Repeat the code word."}


@pytest.mark.parametrize("content", [{"content": None}, {}, {"content": ""}, {"content": []}])
def test_content_is_empty_when_null_or_absent(content: dict[str, Any]) -> None:
    """Null, absent and empty contents are one and the same."""
    (message,) = read_history([{"role": "assistant", **content}], knows_tools=True)
    assert message["content"] == ""


def test_developer_speaks_as_system_when_rendered() -> None:
    """Templates know no developer."""
    (message,) = read_history([{"role": "developer", "content": "Be brief."}], knows_tools=True)
    assert message["role"] == "system"


def test_calls_and_results_become_text_when_the_template_knows_no_tools() -> None:
    """Tool history survives as text; results that follow each other share a turn."""
    history = read_history(
        [
            user("Stock?"),
            {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
            {"role": "tool", "tool_call_id": "k1", "content": "17 boxes"},
            {"role": "tool", "tool_call_id": "k2", "content": [{"type": "text", "text": "4"}]},
            {"role": "assistant", "content": "21."},
            {"role": "function", "name": "stock", "content": "0"},
        ],
        knows_tools=False,
    )
    call = '<tool_call>\n{"name": "stock", "arguments": {}}\n</tool_call>'
    first, second = (f"<tool_response>\n{n}\n</tool_response>" for n in ("17 boxes", "4"))
    assert history == [
        user("Stock?"),
        {"role": "assistant", "content": f"{call}\n{call}"},
        user(f"{first}\n{second}"),
        {"role": "assistant", "content": "21."},
        user("<tool_response>\n0\n</tool_response>"),
    ]


def test_calls_stay_structured_when_the_template_knows_tools() -> None:
    """A template with tools gets arguments as an object, as templates expect."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": null}'}}
    (message, result) = read_history(
        [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "ok"},
        ],
        knows_tools=True,
    )
    assert message["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": None}}}
    ]
    assert result == {"role": "tool", "content": "ok", "tool_call_id": "a"}


def test_legacy_call_is_kept_when_it_is_a_function_call() -> None:
    """The deprecated single call is a call like any other; arguments that are no JSON stay."""
    message = {"role": "assistant", "function_call": {"name": "f", "arguments": "{oops"}}
    (read,) = read_history([message], knows_tools=True)
    assert read["tool_calls"] == [
        {"type": "function", "function": {"name": "f", "arguments": "{oops"}}
    ]


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([user([IMAGE])], "messages[0].content"),
        ([user("a"), user([{"type": "text", "text": "b"}, AUDIO])], "messages[1].content"),
        ([user([{"type": "text"}])], "messages[0].content"),
        ([user(["text"])], "messages[0].content"),
        ([user([{"text": "x"}])], "messages[0].content"),
        ([user(7)], "messages[0].content"),
        ([user({"type": "text", "text": "x"})], "messages[0].content"),
        ([{"role": "wizard", "content": "x"}], "messages[0].role"),
        ([{"content": "x"}], "messages[0].role"),
        (["hello"], "messages[0]"),
        ([{"role": "assistant", "tool_calls": [{}]}], "messages[0].tool_calls[0]"),
        ([{"role": "assistant", "tool_calls": {"a": 1}}], "messages[0].tool_calls"),
        ([], "messages"),
        (None, "messages"),
        ("hello", "messages"),
    ],
)
def test_field_is_named_when_a_message_is_wrong(messages: Any, param: str) -> None:
    """What is not text is refused by name, never answered as if it were empty."""
    with pytest.raises(BadRequest) as caught:
        read_history(messages, knows_tools=False)
    assert caught.value.param == param
    assert param in caught.value.message
