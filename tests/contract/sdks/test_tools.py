"""Tools through both vendors' SDKs: calls, arguments and results."""

import uuid
from typing import Any

import anthropic
import openai

from tests.contract.sdks.vendors import Messages, Responses
from tests.contract.stack import Stack
from tests.fakes.upstream import DONE, Answer, FakeUpstream, chunk, streamed, usage_chunk

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS = [
    chunk({"role": "assistant", "content": None}),
    *(
        chunk({"tool_calls": [piece]})
        for piece in (
            {
                "index": 0,
                "id": "k1",
                "type": "function",
                "function": {"name": "weather", "arguments": ""},
            },
            {"index": 0, "function": {"arguments": '{"city": "Zür'}},
            {"index": 0, "function": {"arguments": 'ich 🌧"}'}},
            {
                "index": 1,
                "id": "k2",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
            },
        )
    ),
    chunk({}, finish="tool_calls"),
    usage_chunk(7, 9, 3),
    DONE,
]


def test_tools_make_a_round_trip(relayed: Any, kind: Any, upstream: FakeUpstream) -> None:
    """Calls arrive whole and streamed, new and cached; their results reach the model in place."""
    upstream.script = lambda _: Answer(CALLS)
    described = {"name": "weather", "description": "Tells it."}
    if kind is Messages:
        tools: list[dict[str, Any]] = [{**described, "input_schema": WEATHER}]
        choice: Any = {"type": "any"}
    else:
        tools = [{"type": "function", **described, "parameters": WEATHER, "strict": None}]
        choice = "required"
    told = [relayed.ask("Weather?", tools=tools, tool_choice=choice) for _ in range(2)]
    streams = [relayed.stream("Weather?", tools=tools, tool_choice=choice)[1] for _ in range(2)]
    assert told[0] == told[1] == streams[0] == streams[1]
    assert told[0][1] == [("weather", {"city": "Zürich 🌧"}), ("weather", {"city": "Rome"})]
    assert told[0][3] == {"input": 7, "output": 9}
    (call,) = upstream.calls
    function = {**described, "parameters": WEATHER}
    assert call.body["tools"] == [{"type": "function", "function": function}]
    assert call.body["tool_choice"] == "required"


def test_local_model_calls_the_tool_it_must(local: Any, kind: Any) -> None:
    """A forced call has arguments of its schema, the same streamed, whole and cached."""
    described = {"name": "weather", "description": "Tells the weather of a city."}
    if kind is Messages:
        tools: list[dict[str, Any]] = [{**described, "input_schema": WEATHER}]
        choice: Any = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
        fields: dict[str, Any] = {"max_tokens": 48}
    else:
        tools = [{"type": "function", **described, "parameters": WEATHER, "strict": True}]
        choice = {"type": "function", "name": "weather"}
        fields = {"max_output_tokens": 48, "parallel_tool_calls": False}
    asked = {"tools": tools, "tool_choice": choice, **fields}
    streamed_ = local.stream("What is the weather in Rome?", **asked)[1]
    assert local.ask("What is the weather in Rome?", **asked) == streamed_
    assert streamed_[1] == [("weather", {"city": "Rome"})]
    assert streamed_[2] in ("tool_use", "completed")


def test_results_of_tools_reach_the_model_in_place(
    relay_stack: Stack, upstream: FakeUpstream
) -> None:
    """What the SDKs give back as history is one and the same conversation to the upstream."""
    space = uuid.uuid4().hex
    upstream.script = lambda _: Answer(CALLS)
    first, second = (sdk(relay_stack.url, "stub-model", space) for sdk in (Messages, Responses))
    with anthropic.Anthropic(**first.more) as client:
        message = client.messages.create(**first.fields("Weather?"))
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"rain {at}"}
            for at, block in enumerate(message.content)
        ]
        upstream.script = lambda _: Answer(streamed(["Take a coat."]))
        turns = [
            {"role": "user", "content": "Weather?"},
            message.to_param(),
            {"role": "user", "content": results},
        ]
        last = client.messages.create(**first.fields("", messages=turns))
        assert last.content[0].text == "Take a coat."
    with openai.OpenAI(**second.more) as client_:
        response = client_.responses.create(**second.fields("Weather?"))
        outputs = [
            {"type": "function_call_output", "call_id": item.call_id, "output": f"rain {at}"}
            for at, item in enumerate(response.output)
        ]
        chained = client_.responses.create(
            **second.fields("", input=outputs, previous_response_id=response.id)
        )
        assert chained.output_text == "Take a coat."
    sent = [call.body["messages"] for call in upstream.calls]
    roles = [message["role"] for message in sent[1]]
    assert roles == ["user", "assistant", "tool", "tool"]
    assert [message["tool_call_id"] for message in sent[1][2:]] == ["k1", "k2"]
    # The second first question, and the second conversation, came from the cache.
    assert len(sent) == 2
