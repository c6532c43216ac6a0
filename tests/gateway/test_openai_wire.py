"""What a chat request may hold, and how a violation is named."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.wire.openai import decode_chat
from gateway.wire.validation import decode_object

USER = {"role": "user", "content": "Hi"}


def encoded(**fields: Any) -> bytes:
    return msgspec.json.encode({"model": "m", "messages": [USER], **fields})


def refused(data: bytes) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        decode_chat(data)
    return caught.value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("temperature", "1"),
        ("temperature", True),
        ("top_p", -0.01),
        ("top_p", 1.01),
        ("n", 0),
        ("n", 129),
        ("n", 1.5),
        ("max_tokens", 0),
        ("max_tokens", -1),
        ("max_completion_tokens", 0),
        ("presence_penalty", 2.5),
        ("frequency_penalty", -2.5),
        ("top_logprobs", 21),
        ("top_logprobs", 1),
        ("logit_bias", {"5": 101}),
        ("logit_bias", {"five": 1}),
        ("seed", 2**63),
        ("seed", "7"),
        ("stop", ["a", "b", "c", "d", "e"]),
        ("stop", 5),
        ("stream", "yes"),
        ("stream_options", {"include_usage": True}),
        ("tool_choice", "required"),
        ("response_format", "json"),
        ("messages", []),
        ("messages", "Hi"),
        ("messages", None),
        ("model", ""),
        ("model", None),
        ("metadata", ["a"]),
    ],
)
def test_violation_names_its_field_when_a_value_is_out_of_range(field: str, value: Any) -> None:
    """A wrong value is a 400 whose param is the field itself."""
    error = refused(encoded(**{field: value}))
    assert (error.status, error.kind, error.param) == (400, "invalid_request_error", field)
    assert field in error.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0),
        ("temperature", 2),
        ("top_p", 0),
        ("top_p", 1),
        ("n", 1),
        ("n", 128),
        ("max_tokens", 1),
        ("presence_penalty", -2),
        ("logit_bias", {"5": -100, "6": 100}),
        ("seed", -(2**63)),
        ("seed", 2**63 - 1),
        ("stop", "x"),
        ("stop", ["a", "b", "c", "d"]),
        ("tools", []),
        ("tool_choice", "none"),
        ("response_format", {"type": "text"}),
        ("user", "u"),
    ],
)
def test_value_is_taken_when_it_is_at_a_bound(field: str, value: Any) -> None:
    """Bounds belong to the allowed range."""
    assert decode_chat(encoded(**{field: value})).body[field] == value


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "user"}, "messages[1].content"),
        ({"role": "user", "content": None}, "messages[1].content"),
        ({"role": "user", "content": ""}, "messages[1].content"),
        ({"role": "tool", "content": "4", "tool_call_id": "c9"}, "messages[1].tool_call_id"),
        ({"role": "user", "content": 5}, "messages[1].content"),
        ({"role": "user", "content": []}, "messages[1].content"),
        ({"role": "user", "content": [{"text": "x"}]}, "messages[1].content[0].type"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[1].content[0].text"),
        ({"role": "user", "content": ["x"]}, "messages[1].content[0]"),
        ({"role": "assistant"}, "messages[1].content"),
        ({"role": "tool", "content": "x"}, "messages[1].tool_call_id"),
        ({"role": "robot", "content": "x"}, "messages[1].role"),
        ({"content": "x"}, "messages[1].role"),
        ("Hi", "messages[1]"),
        (
            {"role": "assistant", "tool_calls": [{"id": "k", "function": {"name": "f"}}]},
            "messages[1].tool_calls[0].function.arguments",
        ),
    ],
)
def test_violation_names_its_place_when_a_message_is_malformed(message: Any, param: str) -> None:
    """The param leads to the very message and part."""
    assert refused(encoded(messages=[USER, message])).param == param


@pytest.mark.parametrize("content", [{"content": None}, {}])
def test_history_is_taken_when_content_is_null_beside_tool_calls(content: dict[str, Any]) -> None:
    """P07: null and absent content are the same next to tool calls."""
    call = {"id": "k1", "type": "function", "function": {"name": "stock", "arguments": "{}"}}
    history = [
        USER,
        {"role": "assistant", **content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "k1", "content": "17 boxes"},
        {"role": "assistant", "content": [{"type": "text", "text": "17"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
    ]
    assert decode_chat(encoded(messages=history)).body["messages"] == history


def test_fields_are_kept_when_they_are_unknown() -> None:
    """What we do not know reaches the key and the backend untouched."""
    message = {**USER, "cache_hint": [1, {"a": None}]}
    chat = decode_chat(encoded(messages=[message], guided_regex="a+", top_k=5))
    assert chat.body["guided_regex"] == "a+"
    assert chat.body["top_k"] == 5
    assert chat.body["messages"] == [message]


def test_null_is_absent_when_it_is_explicit() -> None:
    """Every optional field takes null and then is not there."""
    fields = dict.fromkeys(
        [
            "temperature", "top_p", "n", "stop", "seed", "max_tokens", "max_completion_tokens",
            "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs",
            "tools", "tool_choice", "parallel_tool_calls", "response_format", "user", "metadata",
            "store", "stream", "stream_options", "strata", "something_new",
        ]
    )  # fmt: skip
    assert decode_chat(encoded(**fields)).body == {"model": "m", "messages": [USER]}


def test_strata_field_is_read_and_removed_when_it_is_given() -> None:
    """No model sees the field."""
    chat = decode_chat(encoded(strata={"query": "q", "context": ["d1"], "tags": ["a"], "ttl": 5}))
    assert "strata" not in chat.body
    assert chat.request.strata is not None
    assert chat.request.strata.query == "q"


@pytest.mark.parametrize(
    ("field", "param"),
    [
        ({"quarry": "q"}, "strata.quarry"),
        ({"ttl": 0}, "strata.ttl"),
        ({"ttl": 1e12}, "strata.ttl"),
        ({"tags": ["a,b"]}, "strata.tags"),
        ({"context": "d1"}, "strata.context"),
        ({"namespace": "\n"}, "strata.namespace"),
        ("q", "strata"),
    ],
)
def test_violation_names_its_field_when_strata_is_malformed(field: Any, param: str) -> None:
    """A typo in the field is not silently dropped."""
    assert (refused(encoded(strata=field)).param or "").startswith(param)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"model":',
        b"[]",
        b"null",
        b'{"model": "\xff"}',
        b'{"model": NaN}',
        b'{"temperature": 1e400}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"model":"m","messages":[]} {}',
        b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}',
    ],
)
def test_body_is_refused_when_it_is_no_json_object(data: bytes) -> None:
    """Malformed JSON is a 400, whatever is wrong with it."""
    assert refused(data).kind == "invalid_request_error"


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_body_is_an_object_or_a_bad_request(data: bytes) -> None:
    """No input raises anything else."""
    try:
        assert isinstance(decode_object(data), dict)
    except BadRequest:
        return


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(st.sampled_from(["messages", "stop", "logit_bias", "tools", "strata", "n"]), _JSON)
def test_any_json_in_a_field_is_taken_or_a_bad_request(field: str, value: Any) -> None:
    """No value of a field raises anything else."""
    try:
        decode_chat(encoded(**{field: value}))
    except BadRequest as error:
        assert error.param is not None  # noqa: PT017 - both outcomes are right


def test_nesting_is_named_when_no_decoder_can_follow_it() -> None:
    """A client learns that the JSON is valid, and too deep."""
    with pytest.raises(BadRequest, match="nested too deeply"):
        decode_chat(b'{"messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_field_is_named_when_it_is_nested_too_deeply(opening: str) -> None:
    """Depths that parse but would exhaust what reads them later are refused at the door."""
    closing = {"[": "]", '{"a":': "}"}[opening]
    for depth, refused in ((60, False), (200, True), (600, True), (900, True)):
        nested = opening * depth + "1" + closing * depth
        body = f'{{"model":"m","messages":[{{"role":"user","content":"x"}}],"zz":{nested}}}'
        if not refused:
            decode_chat(body.encode())
            continue
        with pytest.raises(BadRequest) as caught:
            decode_chat(body.encode())
        assert caught.value.param == "zz"
