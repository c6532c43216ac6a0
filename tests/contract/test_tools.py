"""Tools and structured output of the bundled model, as the OpenAI SDK's users have them."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any

import jsonschema
import openai
import pydantic
import pytest

from tests.contract.client import CHAT_MODEL, Client
from tests.contract.conftest import Headers
from tests.contract.stack import Stack

CITY = {"type": "string", "maxLength": 20}
WEATHER = {
    "type": "object",
    "properties": {"city": CITY, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the weather of a city",
            "parameters": WEATHER,
        },
    },
    {"type": "function", "function": {"name": "get_time", "description": "Get the time"}},
]
SCHEMAS = {"get_weather": WEATHER, "get_time": {"type": "object", "maxProperties": 0}}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
ASK = "What is the weather in Paris?"
BYPASS = {"cache-control": "no-cache, no-store"}


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Friend(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=16)
    close: bool


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=16)
    age: int = pydantic.Field(ge=0, le=150)
    mood: Mood | None
    friends: list[Friend] = pydantic.Field(max_length=2)


def json_schema(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **more}}


@pytest.fixture
def sdk(stack: Stack, space: Headers) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{stack.url}/v1", api_key="any", default_headers=space, max_retries=0
    ) as client:
        yield client


def calls_of(message: Any) -> list[tuple[str, Any]]:
    made = [
        (call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls
    ]
    for name, arguments in made:
        jsonschema.validate(arguments, SCHEMAS[name])
    assert len({call.id for call in message.tool_calls}) == len(made)
    return made


def test_answer_is_the_model_when_it_is_parsed(sdk: openai.OpenAI) -> None:
    """``parse`` gives an object of the caller's class, strict as the SDK makes its schema."""
    parsed = sdk.chat.completions.parse(
        model=CHAT_MODEL,
        temperature=0,
        max_tokens=200,
        messages=[{"role": "user", "content": "Ann is 31, cheerful, and Bob is her friend."}],
        response_format=Person,
    )
    assert parsed.choices[0].finish_reason == "stop"
    assert isinstance(parsed.choices[0].message.parsed, Person)


def test_answer_is_an_object_when_json_is_asked_for(client: Client) -> None:
    """json_object is JSON if it was not cut, and says so if it was."""
    for prompt in ("Give me a JSON object with one colour.", "Say hello, do not write JSON."):
        choice = client.answer(
            prompt, response_format={"type": "json_object"}, max_tokens=60
        ).json()["choices"][0]
        assert choice["message"]["content"].startswith("{")
        if choice["finish_reason"] == "stop":
            assert isinstance(json.loads(choice["message"]["content"]), dict)
        else:
            assert choice["finish_reason"] == "length"


def test_tools_make_a_round_trip(sdk: openai.OpenAI) -> None:
    """Call, result, answer: what was called goes back as it came and is understood."""
    history: list[Any] = [{"role": "user", "content": ASK}]
    common: dict[str, Any] = {"model": CHAT_MODEL, "temperature": 0, "tools": TOOLS}
    first = sdk.chat.completions.create(
        messages=history, tool_choice=NAMED, parallel_tool_calls=False, max_tokens=60, **common
    )
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.content is None
    [(name, _)] = calls_of(message)
    assert name == "get_weather"
    history += [
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Sunny, 21 degrees"},
    ]
    second = sdk.chat.completions.create(messages=history, max_tokens=24, **common)
    assert second.choices[0].message.content
    cached = second.usage.prompt_tokens_details.cached_tokens  # type: ignore[union-attr]
    generated = first.usage.completion_tokens  # type: ignore[union-attr]
    assert cached >= first.usage.prompt_tokens + generated - 16  # type: ignore[union-attr]


def test_stream_is_the_whole_when_tools_are_called(sdk: openai.OpenAI, client: Client) -> None:
    """The name comes first, arguments in pieces; joined they are the whole answer's."""
    asked = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
    whole = client.answer(ASK, headers=BYPASS, max_tokens=80, **asked).json()["choices"][0]
    stream = client.stream(ASK, headers=BYPASS, max_tokens=80, **asked)
    pieces = [call for delta in stream.deltas for call in delta.get("tool_calls") or []]
    assert pieces[0]["id"]
    assert pieces[0]["function"]["arguments"] == ""
    assert all("id" not in piece and "name" not in piece["function"] for piece in pieces[1:])
    assert len(pieces) > 2
    [made] = whole["message"]["tool_calls"]
    joined = "".join(piece["function"]["arguments"] for piece in pieces)
    assert (pieces[0]["function"]["name"], joined) == (
        made["function"]["name"],
        made["function"]["arguments"],
    )
    assert [reason for reason in stream.finish_reasons if reason] == ["tool_calls"]
    assert whole["finish_reason"] == "tool_calls"
    assert stream.text == ""


def test_calls_fit_their_tools_when_several_are_required(sdk: openai.OpenAI) -> None:
    """Parallel calls are each valid, whatever the model makes of them; n choices are apart."""
    answer = sdk.chat.completions.create(
        model=CHAT_MODEL,
        messages=[{"role": "user", "content": "The weather in Paris and in Rome, please."}],
        tools=TOOLS,
        tool_choice="required",
        max_tokens=90,
        temperature=0.8,
        seed=7,
        n=2,
    )
    for choice in answer.choices:
        assert choice.finish_reason in ("tool_calls", "length")
        assert choice.message.tool_calls
        if choice.finish_reason == "tool_calls":
            calls_of(choice.message)


def test_replay_is_the_first_answer_when_calls_come_from_the_cache(client: Client) -> None:
    """Ids, names, arguments, reason and usage are kept, as whole and as stream."""
    asked = {"tools": TOOLS, "tool_choice": NAMED, "parallel_tool_calls": False, "max_tokens": 60}
    first = client.seed(ASK, **asked)
    again = client.answer(ASK, **asked)
    assert again.headers["x-strata-cache"] == "exact"
    assert again.json()["choices"] == first.json()["choices"]
    assert again.json()["usage"] == first.json()["usage"]
    stream = client.stream(ASK, **asked)
    assert stream.cache == "exact"
    pieces = [call for delta in stream.deltas for call in delta.get("tool_calls") or []]
    made = first.json()["choices"][0]["message"]["tool_calls"][0]
    assert pieces[0]["id"] == made["id"]
    joined = "".join(piece["function"].get("arguments", "") for piece in pieces)
    assert joined == made["function"]["arguments"]


def test_tools_are_ignored_when_none_may_be_called(client: Client) -> None:
    """tool_choice none is the plain answer, to the letter and to the token."""
    plain = client.answer(ASK, headers=BYPASS).json()
    none = client.answer(ASK, headers=BYPASS, tools=TOOLS, tool_choice="none").json()
    assert none["choices"] == plain["choices"]
    assert none["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]


def test_batched_equals_alone_when_constrained_and_free_requests_mix(client: Client) -> None:
    """Eight at once, greedy: each gets the answer it gets alone, warm or cold."""
    requests: list[dict[str, Any]] = [
        {"prompt": f"Tell me about {name}.", "max_tokens": 12, **more}
        for name in ("Ann", "Bob")
        for more in (
            {},
            {"response_format": json_schema(Friend.model_json_schema())},
            {"tools": TOOLS, "tool_choice": NAMED, "parallel_tool_calls": False},
            {"structured_outputs": {"choice": ["a good friend", "no idea"]}},
        )
    ]

    def ask(request: dict[str, Any]) -> Any:
        message = client.answer(headers=BYPASS, **request).json()["choices"][0]["message"]
        for call in message.get("tool_calls") or []:
            call.pop("id")
        return message

    alone = [ask(request) for request in requests]
    with ThreadPoolExecutor(len(requests)) as pool:
        assert list(pool.map(ask, requests)) == alone


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("Köln 🌙 你好", {"const": {"city": 'Köln "🌙"\n你好', "path": "C:\\x/y"}}),
        ("a list", {"type": "array", "items": {"enum": [1, None, True, "é"]}, "minItems": 2}),
        ("a tree", {"$ref": "#/$defs/t", "$defs": {"t": {"enum": [{"left": {}}, []]}}}),
        ("either", {"anyOf": [{"const": 1.5}, {"type": "boolean"}]}),
    ],
)
def test_answer_validates_when_the_schema_is_unusual(
    client: Client, text: str, schema: dict[str, Any]
) -> None:
    """Unicode, escapes, references, alternatives, and roots that are no objects."""
    for strict in (True, False, None):
        choice = client.answer(
            text, response_format=json_schema(schema, strict=strict), max_tokens=60
        ).json()["choices"][0]
        if choice["finish_reason"] == "stop":
            jsonschema.validate(json.loads(choice["message"]["content"]), schema)


def test_stop_string_cuts_when_it_comes_inside_json(client: Client) -> None:
    """What the caller wants to stop at wins over the schema; a stream stops at the same place."""
    asked = {"response_format": json_schema({"const": {"a": 1, "b": 2}}), "stop": ['"b"']}
    whole = client.answer("Go.", headers=BYPASS, **asked).json()["choices"][0]
    assert whole["message"]["content"] == '{"a": 1, '
    assert whole["finish_reason"] == "stop"
    assert client.stream("Go.", headers=BYPASS, **asked).text == '{"a": 1, '


def test_every_token_has_an_entry_when_logprobs_are_asked_for(client: Client) -> None:
    """Constrained text has logprobs like any other; the bytes are the content."""
    asked = {"response_format": json_schema({"enum": ["tea", "chess"]}), "logprobs": True}
    choice = client.answer("Tea or chess?", top_logprobs=2, **asked).json()["choices"][0]
    entries = choice["logprobs"]["content"]
    text = b"".join(bytes(entry["bytes"]) for entry in entries).decode()
    assert text == choice["message"]["content"]


@pytest.mark.parametrize(
    ("fields", "param", "named"),
    [
        (
            {"response_format": json_schema({"not": {}})},
            "response_format.json_schema.schema",
            "not",
        ),
        (
            {"response_format": json_schema({"type": "array", "uniqueItems": True})},
            "response_format.json_schema.schema",
            "uniqueItems",
        ),
        (
            {"response_format": json_schema({"type": "integer", "multipleOf": 9_999_991})},
            "response_format.json_schema.schema",
            "multipleOf",
        ),
        (
            {"response_format": json_schema({"$ref": "#"})},
            "response_format.json_schema.schema",
            "no text",
        ),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "schema"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "function"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "nope"}}},
            "tool_choice.function.name",
            "nope",
        ),
        ({"structured_outputs": {"regex": "(a"}}, "structured_outputs.regex", "unclosed"),
        ({"guided_grammar": "start: nothing"}, "guided_grammar", "nothing"),
        ({"guided_regex": "a", "guided_choice": ["b"]}, "guided_regex", "guided_choice"),
    ],
)
def test_field_is_named_when_a_wish_cannot_be_granted(
    client: Client, fields: dict[str, Any], param: str, named: str
) -> None:
    """Unsupported is a 400 in both modes, before the first byte, and the next request is served."""
    for more in ({}, {"stream": True}):
        response = client.chat("Hi", **fields, **more)
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["param"] == param
        assert named in error["message"]
    assert client.answer("Hi", max_tokens=1).status_code == 200


def test_vllms_fields_are_honoured_when_they_are_sent(client: Client) -> None:
    """A client of vLLM finds its choices, patterns and grammars."""
    for fields, expected in (
        ({"structured_outputs": {"choice": ["sì", "no"]}}, r"sì|no"),
        ({"guided_choice": ["yes, of course", "no/never"]}, r"yes, of course|no/never"),
        ({"guided_regex": r"\d{4}/\d\d"}, r"\d{4}/\d\d"),
        ({"guided_json": json.dumps({"const": [1, 2]})}, r"\[1, 2\]"),
        ({"guided_grammar": 'start: "x" ("+" "x"){2}'}, r"x\+x\+x"),
    ):
        content = client.answer("Go on.", **fields).json()["choices"][0]["message"]["content"]
        jsonschema.validate(content, {"pattern": f"^({expected})$"})


@pytest.mark.parametrize("content", [None, "", [{"type": "text", "text": "Let me look."}]])
@pytest.mark.parametrize("arguments", ["{}", "", '{"city": "Köln"}', "not json"])
def test_history_is_read_when_it_has_calls_and_tools_are_given(
    client: Client, content: Any, arguments: str
) -> None:
    """P07 with tools: null or parts beside calls, odd arguments and results as parts."""
    call = {"id": "k1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    history = [
        {"role": "user", "content": "What is the stock level?"},
        {"role": "assistant", "content": content, "tool_calls": [call, {**call, "id": "k2"}]},
        {"role": "tool", "tool_call_id": "k1", "content": "17 boxes"},
        {"role": "tool", "tool_call_id": "k2", "content": [{"type": "text", "text": "none"}]},
    ]
    answer = client.answer(history, tools=TOOLS, max_tokens=4).json()
    assert "None" not in str(answer["choices"][0]["message"]["content"])
    assert answer["choices"][0]["finish_reason"] in ("stop", "length", "tool_calls")
