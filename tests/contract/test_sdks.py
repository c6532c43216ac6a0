"""Both vendors' SDKs on Messages and Responses: local, relayed or cached, the result is one."""

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.contract.client import CHAT_MODEL, Client
from tests.contract.conftest import Relay
from tests.contract.stack import Stack
from tests.fakes.upstream import (
    DONE,
    Answer,
    Call,
    FakeUpstream,
    Gate,
    chunk,
    refusal,
    split_at,
    streamed,
    usage_chunk,
)

UNICODE = "晚安🌙 café Ω 你好👩‍🚀"
LONG = "pebble " * 12_000 + "What is the secret word?"
MAX_TOKENS = 12
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Sdk:
    """One vendor's SDK: what a user writes with it, read into plain values."""

    kind: str

    def __init__(self, url: str, model: str, space: str) -> None:
        self.model = model
        self.more = {
            "base_url": url if self.kind == "messages" else f"{url}/v1",
            "api_key": "any",
            "max_retries": 0,
            "timeout": 120,
            "default_headers": {"x-strata-namespace": space},
        }

    def ask(self, text: str, **fields: Any) -> tuple[str, Any, str, dict[str, int]]:
        """Return the text, tool calls, how it ended and the usage of a whole answer."""
        raise NotImplementedError

    def stream(self, text: str, **fields: Any) -> tuple[str, tuple[str, Any, str, dict[str, int]]]:
        """Return the joined deltas, and the same of the SDK's final answer."""
        raise NotImplementedError


class Messages(Sdk):
    kind = "messages"

    def fields(self, text: str, **fields: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": text}]
        extra = {"temperature": 0, **fields.pop("extra_body", {})}
        known = {"model": self.model, "max_tokens": MAX_TOKENS, "messages": messages}
        return {**known, "extra_body": extra, **fields}

    def ask(self, text: str, **fields: Any) -> Any:
        with anthropic.Anthropic(**self.more) as client:
            return self.read(client.messages.create(**self.fields(text, **fields)))

    def stream(self, text: str, **fields: Any) -> Any:
        with (
            anthropic.Anthropic(**self.more) as client,
            client.messages.stream(**self.fields(text, **fields)) as stream,
        ):
            return "".join(stream.text_stream), self.read(stream.get_final_message())

    async def ask_async(self, text: str) -> Any:
        async with anthropic.AsyncAnthropic(**self.more) as client:
            whole = self.read(await client.messages.create(**self.fields(text)))
            async with client.messages.stream(**self.fields(text)) as stream:
                joined = "".join([piece async for piece in stream.text_stream])
                return whole, (joined, self.read(await stream.get_final_message()))

    @staticmethod
    def read(message: Any) -> Any:
        text = "".join(block.text for block in message.content if block.type == "text")
        calls = [(b.name, b.input) for b in message.content if b.type == "tool_use"]
        usage = message.usage
        counts = {
            "input": usage.input_tokens + usage.cache_read_input_tokens,
            "output": usage.output_tokens,
        }
        return text, calls, message.stop_reason, counts


class Responses(Sdk):
    kind = "responses"

    def fields(self, text: str, **fields: Any) -> dict[str, Any]:
        return {
            "model": self.model,
            "input": text,
            "max_output_tokens": MAX_TOKENS,
            "temperature": 0,
            **fields,
        }

    def ask(self, text: str, **fields: Any) -> Any:
        with openai.OpenAI(**self.more) as client:
            return self.read(client.responses.create(**self.fields(text, **fields)))

    def stream(self, text: str, **fields: Any) -> Any:
        pieces, last = [], None
        with (
            openai.OpenAI(**self.more) as client,
            client.responses.stream(**self.fields(text, **fields)) as stream,
        ):
            for event in stream:
                last = event
                if event.type == "response.output_text.delta":
                    pieces.append(event.delta)
        return "".join(pieces), self.read(last.response)  # type: ignore[union-attr]

    async def ask_async(self, text: str) -> Any:
        pieces, last = [], None
        async with openai.AsyncOpenAI(**self.more) as client:
            whole = self.read(await client.responses.create(**self.fields(text)))
            async with client.responses.stream(**self.fields(text)) as stream:
                async for event in stream:
                    last = event
                    if event.type == "response.output_text.delta":
                        pieces.append(event.delta)
        return whole, ("".join(pieces), self.read(last.response))  # type: ignore[union-attr]

    @staticmethod
    def read(response: Any) -> Any:
        calls = [
            (item.name, json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ]
        why = response.incomplete_details.reason if response.incomplete_details else ""
        counts = {"input": response.usage.input_tokens, "output": response.usage.output_tokens}
        return response.output_text, calls, why or response.status, counts


SDKS: list[type[Any]] = [Messages, Responses]


@pytest.fixture(params=SDKS, ids=lambda kind: kind.kind)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def relayed(kind: Any, relay_stack: Stack, upstream: FakeUpstream) -> Any:
    """The SDK over the gateway in front of the scripted upstream."""
    return kind(relay_stack.url, "stub-model", uuid.uuid4().hex)


@pytest.fixture
def local(kind: Any, stack: Stack) -> Any:
    """The SDK over the gateway with the local model."""
    return kind(stack.url, CHAT_MODEL, uuid.uuid4().hex)


def outcome(client: Client, url: str, body: dict[str, Any], space: str = "n") -> str:
    response = client.http.post(url, json=body, headers={"x-strata-namespace": space})
    assert response.status_code == 200, response.text
    return str(response.headers["x-strata-cache"])


def test_same_result_comes_whole_streamed_new_and_cached(local: Any) -> None:
    """P03: text, ending and usage of the local model are one, however they are asked for."""
    for text in ("What is the capital of France?", f"Copy this line exactly: {UNICODE}"):
        joined, final = local.stream(text)
        assert joined == final[0]
        assert local.ask(text) == final
    whole, streamed_ = asyncio.run(local.ask_async(text))
    assert whole == streamed_[1] == final
    assert streamed_[0] == joined
    assert final[3]["output"] <= MAX_TOKENS


def test_answers_go_to_the_cache_and_come_from_it_across_apis(
    stack: Stack, client: Client, space: dict[str, str]
) -> None:
    """What one API stored serves the same question in the others; other limits do not."""
    name = space["x-strata-namespace"]
    text, common = "Name the largest planet.", {"model": CHAT_MODEL, "temperature": 0}
    turns = [{"role": "user", "content": text}]
    chat = {**common, "messages": turns, "max_tokens": 6}
    messages = {**common, "messages": turns, "max_tokens": 6}
    responses = {**common, "input": text, "max_output_tokens": 6}
    assert outcome(client, "/v1/messages", messages, name) == "miss"
    assert outcome(client, "/v1/chat/completions", chat, name) == "exact"
    assert outcome(client, "/v1/responses", responses, name) == "exact"
    assert outcome(client, "/v1/responses", {**responses, "max_output_tokens": 7}, name) == "miss"
    assert outcome(client, "/v1/messages", {**messages, "top_k": 1}, name) == "miss"


def test_other_words_for_one_question_hit_across_apis(
    client: Client, space: dict[str, str]
) -> None:
    """The semantic layer knows no API either."""
    common = {"model": CHAT_MODEL, "temperature": 0}
    asked = {"role": "user", "content": "What is the capital of France?"}
    body = {**common, "messages": [asked], "max_tokens": 32}
    name = space["x-strata-namespace"]
    assert outcome(client, "/v1/messages", body, name) == "miss"
    other = {**common, "input": "Which city is the capital of France?", "max_output_tokens": 32}
    assert outcome(client, "/v1/responses", other, name) == "semantic"


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


def test_text_is_whole_when_the_upstream_cuts_it_at_any_byte(
    relayed: Any, upstream: FakeUpstream
) -> None:
    """P01: no character is lost or split, wherever the upstream's writes end."""
    pieces = streamed(["晚安🌙", "café👩‍🚀"])
    at = len(pieces[0])
    for offset in range(at, at + len(pieces[1]) + len(pieces[2]), 7):
        upstream.script = lambda _, cut=offset: Answer(split_at(pieces, cut))
        joined, final = relayed.stream(f"Say {offset}")
        assert joined == final[0] == "晚安🌙café👩‍🚀"


def test_reasoning_is_told_and_comes_back_from_the_cache(
    relay_stack: Stack, upstream: FakeUpstream, clients: Callable[..., Client]
) -> None:
    """An upstream's reasoning is a thinking block and a reasoning item, before the text."""
    thoughts = [chunk({"reasoning_content": piece}) for piece in ("Hm, ", "yes.")]
    upstream.script = lambda _: Answer([*thoughts, *streamed(["Yes."])])
    space = uuid.uuid4().hex
    caller = clients(relay_stack, x_strata_namespace=space)
    body: dict[str, Any] = {"model": "stub-model", "max_tokens": 9}
    body["messages"] = [{"role": "user", "content": "Is it?"}]
    asked = {"model": "stub-model", "max_output_tokens": 9, "input": "Is it?"}
    for outcome_ in ("miss", "exact"):
        response = caller.http.post("/v1/messages", json=body)
        assert response.headers["x-strata-cache"] == outcome_
        assert response.json()["content"] == [
            {"type": "thinking", "thinking": "Hm, yes.", "signature": ""},
            {"type": "text", "text": "Yes."},
        ]
    output = caller.http.post("/v1/responses", json=asked).json()["output"]
    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert output[0]["content"] == [{"type": "reasoning_text", "text": "Hm, yes."}]
    assert len(upstream.calls) == 1


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
        (401, sdk.AuthenticationError),
        (403, sdk.PermissionDeniedError),
        (429, sdk.RateLimitError),
        (500, sdk.InternalServerError),
    ):
        body = {"error": {"message": f"no {status}", "type": "x", "param": None, "code": None}}
        upstream.script = lambda _, said=(status, body): refusal(*said, retry_after="0")
        with pytest.raises(error, match=f"no {status}"):
            getattr(relayed, mode)(f"Say {uuid.uuid4()}")


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


def test_stop_string_is_named_when_the_local_model_meets_it(stack: Stack, kind: Any) -> None:
    """Anthropic's stop_sequence tells which one it was, new and cached, whole and streamed."""
    if kind is not Messages:
        return
    sdk = Messages(stack.url, CHAT_MODEL, uuid.uuid4().hex)
    fields = sdk.fields("What is the capital of France?", stop_sequences=["zzz", "Paris"])
    with anthropic.Anthropic(**sdk.more) as client:
        for _ in range(2):
            whole = client.messages.create(**fields)
            with client.messages.stream(**fields) as stream:
                final = stream.get_final_message()
            for message in (whole, final):
                assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "Paris")
                assert "Paris" not in message.content[0].text


def test_tokens_are_counted_as_they_are_used(stack: Stack) -> None:
    """count_tokens says what the answer's usage will say of its input."""
    sdk = Messages(stack.url, CHAT_MODEL, uuid.uuid4().hex)
    with anthropic.Anthropic(**sdk.more) as client:
        turns: Any = [{"role": "user", "content": f"Hi {UNICODE}"}]
        count = client.messages.count_tokens(model=CHAT_MODEL, messages=turns, system="Be kind.")
        fields = sdk.fields("", messages=turns, system="Be kind.")
        usage = client.messages.create(**fields).usage
    assert count.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_conversation_goes_on_by_its_id_after_a_restart(
    start_stack: Callable[..., Stack], clients: Callable[..., Client]
) -> None:
    """Kept responses outlive the process, and the chain hits what the whole history stored."""
    with FakeUpstream() as fake:
        toml = (
            f'[[upstreams]]\nname = "stub"\nbase_url = "{fake.base_url}"\nmodels = ["stub-model"]\n'
        )
        stack = start_stack(toml=toml, LOCAL__MODEL="none", SEMANTIC__ENABLED="false")
        caller = clients(stack, x_strata_namespace="n")
        one = caller.http.post("/v1/responses", json={"model": "stub-model", "input": "One"})
        stack.restart()
        asked = {"model": "stub-model", "input": "Two", "previous_response_id": one.json()["id"]}
        two = caller.http.post("/v1/responses", json=asked)
        assert two.json()["output"][0]["content"][0]["text"] == "ECHO:Two"
        turns = [
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": "ECHO:One"},
            {"role": "user", "content": "Two"},
        ]
        assert fake.calls[-1].body["messages"] == turns
        chat = {"model": "stub-model", "messages": turns}
        assert outcome(caller, "/v1/chat/completions", chat) == "exact"


def relayed_call(call: Call) -> dict[str, Any]:
    return {name: value for name, value in call.body.items() if not name.startswith("stream")}


def test_upstream_gets_plain_chat(relay: Relay, upstream: FakeUpstream) -> None:
    """Nothing of the other API's own reaches an upstream that speaks chat."""
    relay.http.post(
        "/v1/messages",
        json={
            "model": "stub-model",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "Hi"}],
            "metadata": {"user_id": "u"},
            "stop_sequences": ["x"],
        },
        headers={"anthropic-version": "2023-06-01", "anthropic-beta": "a,b"},
    )
    assert relayed_call(upstream.calls[0]) == {
        "model": "stub-model",
        "max_tokens": 5,
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}],
        "user": "u",
        "stop": ["x"],
    }
