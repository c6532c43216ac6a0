"""``POST /v1/messages`` in process, read by Anthropic's SDK and by the letter of its types."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from gateway.auth import KeyRing
from gateway.backends.base import Delta, Event
from gateway.errors import BackendError, BackendUnavailable, ContextTooLong, UpstreamStatus
from gateway.keys_file import add_key
from tests.fakes.answers import ANSWERS, CALLED, SAID, STORED, TEXT, USAGE, call, ended
from tests.fakes.backends import FakeBackend
from tests.fakes.gateway import MemoryGateway
from tests.fakes.pipeline import FakePipeline

URL = "/v1/messages"
HI = {"role": "user", "content": "Hi"}
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
BLOCKS = {
    "said": [{"type": "text", "text": TEXT}],
    "cut": [{"type": "text", "text": "half a"}],
    "stopped": [{"type": "text", "text": "one "}],
    "empty": [],
    "refused": [{"type": "text", "text": "I won't."}],
    "filtered": [{"type": "text", "text": "so"}],
    "thought": [
        {"type": "thinking", "thinking": "Hm, yes.", "signature": ""},
        {"type": "text", "text": "Yes."},
    ],
    "called": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_0", "name": "weather", "input": {"city": "Zürich 🌧"}},
    ],
    "called twice": [
        {"type": "tool_use", "id": "call_0", "name": "weather", "input": {"city": "Rome"}},
        {"type": "tool_use", "id": "call_1", "name": "time", "input": {}},
    ],
    "interleaved": [
        {"type": "tool_use", "id": "call_0", "name": "weather", "input": {"city": "Rome"}},
        {"type": "tool_use", "id": "call_1", "name": "time", "input": {"zone": 1}},
    ],
    "silent call": [{"type": "tool_use", "id": "call_0", "name": "now", "input": {}}],
    "cited": [{"type": "text", "text": "See [1]."}],
}
STOPS = {
    "said": "end_turn",
    "cut": "max_tokens",
    "stopped": "stop_sequence",
    "empty": "end_turn",
    "refused": "refusal",
    "filtered": "refusal",
    "thought": "end_turn",
    "cited": "end_turn",
}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 64, "messages": [HI], **fields}


def events(response: httpx.Response) -> list[Any]:
    """Return the events of a stream, each one checked against the SDK's type for it."""
    assert response.status_code == 200, response.text
    found = []
    for text in response.text.split("\n\n")[:-1]:
        name, data = text.split("\n")
        parsed = httpx.Response(200, text=data.removeprefix("data: ")).json()
        assert name == f"event: {parsed['type']}"
        if parsed["type"] not in ("ping", "error"):
            EVENT.validate_python(parsed, strict=True)
        found.append(parsed)
    return found


def joined(told: list[Any]) -> dict[str, Any]:
    """Return what a stream says as a message without names, as the SDK puts it together."""
    from anthropic.lib.streaming._messages import accumulate_event  # noqa: PLC0415 - its inside

    snapshot, buffers = None, dict[int, bytes]()
    for one in told:
        if one["type"] not in ("ping", "message_stop", "error"):
            event = EVENT.validate_python(one)
            snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    assert snapshot is not None
    return bare(snapshot.to_dict())


def bare(message: Any) -> dict[str, Any]:
    """Return a message without its id and without fields the API leaves empty."""
    kept = {name: value for name, value in dict(message).items() if value is not None}
    del kept["id"]
    return kept


@contextlib.asynccontextmanager
async def asking(script: Sequence[Event]) -> AsyncIterator[httpx.AsyncClient]:
    async with MemoryGateway(FakeBackend(script)).client() as client:
        yield client


async def faked(error: Exception | None = None, **fields: Any) -> httpx.Response:
    pipeline = FakePipeline(error=error)
    async with MemoryGateway(FakeBackend([])).client(pipeline=pipeline) as client:
        return await client.post(URL, json=body(**fields))


@pytest.mark.parametrize("name", ANSWERS)
async def test_answer_is_the_same_streamed_or_whole_new_or_cached(name: str) -> None:
    """Content, stop reason and usage of every kind of answer, in Anthropic's terms."""
    async with asking(ANSWERS[name]) as client:
        new = await client.post(URL, json=body(stream=True))
        told, again = events(new), await client.post(URL, json=body(stream=True))
        whole = await client.post(URL, json=body())
    outcomes = [one.headers["x-strata-cache"] for one in (new, again, whole)]
    assert outcomes == ["miss", *(["exact"] * 2 if name in STORED else ["miss"] * 2)]
    Message.model_validate(whole.json(), strict=True)
    message = bare(whole.json())
    assert joined(told) == joined(events(again)) == message
    assert message["content"] == BLOCKS[name]
    assert message["stop_reason"] == STOPS.get(name, "tool_use")
    assert message.get("stop_sequence") == ("two" if name == "stopped" else None)
    assert message["usage"] == {
        "input_tokens": USAGE.prompt_tokens - USAGE.cached_tokens,
        "output_tokens": USAGE.completion_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": USAGE.cached_tokens,
    }


@pytest.mark.parametrize("name", ANSWERS)
async def test_stream_has_one_beginning_and_one_end(name: str) -> None:
    """P05: blocks are numbered from 0 and never overlap; one message_delta, one message_stop."""
    async with asking(ANSWERS[name]) as client:
        indexed = events(await client.post(URL, json=body(stream=True)))
    told = [one["type"] for one in indexed]
    assert told[0] == "message_start"
    assert told[-2:] == ["message_delta", "message_stop"]
    for single in ("message_start", "message_delta", "message_stop"):
        assert told.count(single) == 1
    starts = [one["index"] for one in indexed if one["type"] == "content_block_start"]
    stops = [one["index"] for one in indexed if one["type"] == "content_block_stop"]
    assert starts == stops == list(range(len(BLOCKS[name])))


async def test_cut_call_says_what_is_certain_streamed_or_whole() -> None:
    """A limit in the middle of a call's JSON gives the SDK's partial object in both modes."""
    script = ended(call(0, name="f", arguments='{"a": 1, "b": {"c": "d'), reason="length")
    async with asking(script) as client:
        streamed = joined(events(await client.post(URL, json=body(stream=True))))
        whole = bare((await client.post(URL, json=body())).json())
    assert streamed == whole
    assert whole["content"][0]["input"] == {"a": 1, "b": {}}
    assert whole["stop_reason"] == "max_tokens"


async def test_usage_is_told_from_the_start_when_the_answer_was_cached() -> None:
    """P03: a replay knows the input's tokens before it gives the first one."""
    async with asking(SAID) as client:
        first = events(await client.post(URL, json=body(stream=True)))
        again = events(await client.post(URL, json=body(stream=True)))
    assert first[0]["message"]["usage"]["input_tokens"] == 0
    assert again[0]["message"]["usage"]["input_tokens"] == 5
    assert first[-2]["usage"] == again[-2]["usage"]


async def test_stream_ends_with_an_error_event_when_the_backend_breaks() -> None:
    """One error event is the last; no message_delta claims an end; the whole answer is a 5xx."""
    backend = FakeBackend([Delta(0, "half")], error=BackendError("engine died"))
    async with MemoryGateway(backend).client() as client:
        told = events(await client.post(URL, json=body(stream=True)))
        whole = await client.post(URL, json=body())
    assert [one["type"] for one in told[-1:]] == ["error"]
    assert told[-1]["error"] == {"type": "api_error", "message": "engine died"}
    assert "message_delta" not in [one["type"] for one in told]
    assert whole.status_code == 502
    assert whole.json()["error"]["type"] == "api_error"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ContextTooLong("24002 tokens, 8192 fit", param="messages"), 400, "invalid_request_error"),
        (BackendUnavailable("engine restarts"), 529, "overloaded_error"),
        (UpstreamStatus(429, {"error": {"message": "slow"}}, {}), 429, "rate_limit_error"),
        (UpstreamStatus(500, {"error": "odd"}, {}), 500, "api_error"),
        (RuntimeError("our bug: secret"), 500, "api_error"),
    ],
)
async def test_error_is_in_anthropics_envelope_when_it_comes_first(
    error: Exception, status: int, kind: str, stream: bool
) -> None:
    """P09: a JSON error of the right type in both modes; nothing internal leaks."""
    response = await faked(error, stream=stream)
    assert response.status_code == status
    told = response.json()
    assert told["type"] == "error"
    assert told["error"]["type"] == kind
    assert told["request_id"] == response.headers["x-request-id"] == response.headers["request-id"]
    assert "secret" not in response.text


async def test_error_of_the_backend_names_the_field_as_the_caller_wrote_it() -> None:
    """Chat's names and places are put back into Anthropic's."""
    for param, named in (
        ("stop", "stop_sequences"),
        ("messages[0].content", "system"),
        ("messages[1].content", "messages[0].content"),
        ("messages[3].tool_call_id", "messages[2].content[0]"),
        ("messages", "messages"),
        ("max_completion_tokens", "max_tokens"),
        ("tools[3].function.parameters.properties", "tools[3].input_schema.properties"),
        ("tools[3].function.name", "tools[3].name"),
        ("response_format.json_schema.schema", "output_config.format.schema"),
        ("temperature", "temperature"),
    ):
        error = ContextTooLong(f"{param} is wrong", param=param)
        result = {"type": "tool_result", "tool_use_id": "k"}
        call = {"type": "tool_use", "id": "k", "name": "f", "input": {}}
        turns = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        response = await faked(error, system="S", messages=[HI, *turns])
        assert response.json()["error"]["message"] == f"{named} is wrong"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"model": "m"}', b"\xff"])
async def test_malformed_body_is_a_bad_request(content: bytes) -> None:
    """P09: whatever is sent, the answer is Anthropic's error."""
    async with asking(SAID) as client:
        json_ = {"content-type": "application/json"}
        response = await client.post(URL, content=content, headers=json_)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


async def test_keys_are_taken_from_either_header_when_there_are_keys(tmp_path: Path) -> None:
    """The SDK's x-api-key names the tenant; without one it is an authentication_error."""
    path = tmp_path / "keys.toml"
    _, key = add_key(path, "acme")
    gateway = MemoryGateway(FakeBackend(SAID))
    async with gateway.client(key_ring=KeyRing(path)) as client:
        refused = await client.post(URL, json=body(), headers={"x-api-key": "wrong"})
        served = await client.post(URL, json=body(), headers={"x-api-key": key})
        count = await client.post(f"{URL}/count_tokens", json=body())
    assert refused.status_code == count.status_code == 401
    assert refused.json()["error"]["type"] == "authentication_error"
    assert served.status_code == 200
    assert gateway.records[-1].tenant == "acme"
    assert gateway.records[-1].route == URL


async def test_answer_of_chat_serves_messages_and_the_other_way_round() -> None:
    """One meaning, one entry: what differs is how it is written."""
    chat = {"model": "m", "messages": [HI], "max_tokens": 64}
    async with asking(CALLED) as client:
        stored = await client.post("/v1/chat/completions", json=chat)
        served = await client.post(URL, json=body())
        other = await client.post(URL, json=body(max_tokens=65))
        back = await client.post("/v1/chat/completions", json={**chat, "max_tokens": 65})
    assert stored.headers["x-strata-cache"] == other.headers["x-strata-cache"] == "miss"
    assert served.headers["x-strata-cache"] == back.headers["x-strata-cache"] == "exact"
    assert served.json()["content"] == BLOCKS["called"]
    (made,) = back.json()["choices"][0]["message"]["tool_calls"]
    assert made["function"] == {"name": "weather", "arguments": '{"city": "Zürich 🌧"}'}


async def test_sdk_reads_every_kind_of_answer() -> None:
    """The SDK's own accumulation agrees with its whole answers, new and cached."""
    for name in ("said", "thought", "called", "stopped"):
        async with MemoryGateway(FakeBackend(ANSWERS[name])).listening() as url:
            client = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
            fields: dict[str, Any] = body()
            wholes = [await client.messages.create(**fields) for _ in range(2)]
            async with client.messages.stream(**fields) as stream:
                texts = [text async for text in stream.text_stream]
                last = await stream.get_final_message()
            await client.close()
        assert bare(wholes[0].to_dict()) == bare(wholes[1].to_dict()) == bare(last.to_dict())
        assert "".join(texts) == "".join(
            block.text for block in last.content if block.type == "text"
        )


async def test_sdk_raises_its_own_errors() -> None:
    """Status and mid-stream errors become the SDK's classes."""
    backend = FakeBackend([Delta(0, "half")], error=BackendError("engine died"))
    async with MemoryGateway(backend).listening() as url:
        client = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
        with pytest.raises(anthropic.NotFoundError):
            await client.messages.create(**{**body(), "model": "none"})
        with pytest.raises(anthropic.BadRequestError, match="temperature"):
            await client.messages.create(**body(extra_body={"temperature": 9}))
        with pytest.raises(anthropic.APIStatusError, match="engine died"):
            async with client.messages.stream(**body()) as stream:
                await stream.get_final_message()
        await client.close()
