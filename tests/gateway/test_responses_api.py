"""``/v1/responses`` in process, read by OpenAI's SDK and by the letter of its types."""

from collections.abc import Sequence
from typing import Any

import msgspec
import openai
import pytest
from openai.types.responses import Response

from gateway.backends.base import Delta, Event, TokenLogprob, TopLogprob
from gateway.errors import BackendError, BackendUnavailable, ContextTooLong
from tests.fakes.answers import ANSWERS, CITATION, CITED, SAID, STORED, TEXT, USAGE, ended
from tests.fakes.backends import FakeBackend
from tests.fakes.gateway import MemoryGateway
from tests.fakes.pipeline import FakePipeline
from tests.gateway.responses import URL, body, events, told

ITEMS = {
    "said": [("output_text", TEXT)],
    "cut": [("output_text", "half a")],
    "stopped": [("output_text", "one ")],
    "empty": [("output_text", "")],
    "refused": [("refusal", "I won't.")],
    "filtered": [("output_text", "so")],
    "thought": [("reasoning_text", "Hm, yes."), ("output_text", "Yes.")],
    "called": [("output_text", "Let me look."), ("weather", '{"city": "Zürich 🌧"}')],
    "called twice": [("weather", '{"city": "Rome"}'), ("time", "{}")],
    "interleaved": [("weather", '{"city": "Rome"}'), ("time", '{"zone": 1}')],
    "silent call": [("now", "")],
    "cited": [("output_text", "See [1].")],
}
REASONS = {"cut": "max_output_tokens", "filtered": "content_filter"}


def bare(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response without what is its own: ids and times."""
    output = [{k: v for k, v in item.items() if k != "id"} for item in response["output"]]
    own = ("id", "created_at", "completed_at")
    return {**{k: v for k, v in response.items() if k not in own}, "output": output}


def replayed(stream: Sequence[Any]) -> list[tuple[str, str]]:
    """Put the items together from the deltas alone."""
    kinds: dict[int, str] = {}
    texts: dict[int, str] = {}
    for event in stream:
        place = event.get("output_index")
        if event["type"] == "response.output_item.added":
            kinds[place], texts[place] = event["item"].get("name", ""), ""
        elif event["type"] == "response.content_part.added":
            kinds[place] = event["part"]["type"]
        elif event["type"].endswith(".delta"):
            texts[place] += event["delta"]
    return [(kinds[place], texts[place]) for place in sorted(kinds)]


@pytest.mark.parametrize("name", ANSWERS)
async def test_answer_is_the_same_streamed_or_whole_new_or_cached(name: str) -> None:
    """Items, status and usage of every kind of answer, in the terms of this API."""
    async with MemoryGateway(FakeBackend(ANSWERS[name])).client() as client:
        new = await client.post(URL, json=body(stream=True))
        again = await client.post(URL, json=body(stream=True))
        whole = await client.post(URL, json=body())
    outcomes = [one.headers["x-strata-cache"] for one in (new, again, whole)]
    assert outcomes == ["miss", *(["exact"] * 2 if name in STORED else ["miss"] * 2)]
    response = whole.json()
    Response.model_validate(response, strict=True)
    streams = [events(new), events(again)]
    assert bare(streams[0][-1]["response"]) == bare(streams[1][-1]["response"]) == bare(response)
    expected = ITEMS[name]
    assert [told(item) for item in response["output"]] == expected
    assert replayed(streams[0]) == replayed(streams[1]) == expected
    assert response["status"] == ("incomplete" if name in REASONS else "completed")
    assert (response["incomplete_details"] or {}).get("reason") == REASONS.get(name)
    assert response["output"][-1]["status"] == response["status"]
    assert response["usage"] == {
        "input_tokens": USAGE.prompt_tokens,
        "input_tokens_details": {"cached_tokens": USAGE.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": USAGE.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": USAGE.prompt_tokens + USAGE.completion_tokens,
    }


@pytest.mark.parametrize("name", ANSWERS)
async def test_stream_tells_everything_once_and_in_order(name: str) -> None:
    """P05: created, in_progress, items one after the other, one terminal event, which is last."""
    async with MemoryGateway(FakeBackend(ANSWERS[name])).client() as client:
        stream = events(await client.post(URL, json=body(stream=True)))
    kinds = [event["type"].removeprefix("response.") for event in stream]
    assert kinds[:2] == ["created", "in_progress"]
    terminal = [kind for kind in kinds if kind in ("completed", "incomplete", "failed")]
    assert terminal == [kinds[-1]]
    for place, item in enumerate(stream[-1]["response"]["output"]):
        mine = [event for event in stream if event.get("output_index") == place]
        assert mine[0]["item"]["id"] == mine[-1]["item"]["id"] == item["id"]
        assert mine[-1]["item"] == item
        assert {event["item_id"] for event in mine[1:-1]} == {item["id"]}
        order = [event["type"].removeprefix("response.") for event in mine]
        assert order[0] == "output_item.added"
        assert order[-1] == "output_item.done"
        if item["type"] != "function_call":
            assert order[1] == "content_part.added"
            assert order[-2] == "content_part.done"
    starts = [event["output_index"] for event in stream if event["type"].endswith("item.added")]
    assert starts == list(range(len(ITEMS[name])))


@pytest.mark.parametrize("is_new", [True, False])
async def test_sources_are_told_when_a_text_cites_them(is_new: bool) -> None:
    """Chat's annotations, in this API's shape, as an event and in the item; also from the cache."""
    async with MemoryGateway(FakeBackend(CITED)).client() as client:
        if not is_new:
            await client.post(URL, json=body())
        stream = events(await client.post(URL, json=body(stream=True)))
    (note,) = [each for each in stream if each["type"].endswith("annotation.added")]
    expected = {"type": "url_citation", **CITATION}
    assert (note["annotation"], note["annotation_index"]) == (expected, 0)
    (item,) = stream[-1]["response"]["output"]
    assert item["content"][0]["annotations"] == [expected]


async def test_logprobs_come_with_the_text_when_they_are_included() -> None:
    """Every token's entry is in its delta, in the done event and in the whole answer."""
    entries = [TokenLogprob(c, -0.5, list(c.encode()), [TopLogprob(c, -0.5, [7])]) for c in "ab"]
    script = ended(*(Delta(0, entry.token, logprobs=[entry]) for entry in entries))
    asked = body(include=["message.output_text.logprobs"], top_logprobs=1)
    async with MemoryGateway(FakeBackend(script)).client() as client:
        stream = events(await client.post(URL, json={**asked, "stream": True}))
        whole = (await client.post(URL, json=asked)).json()
    expected = [msgspec.to_builtins(entry) for entry in entries]
    assert whole["output"][0]["content"][0]["logprobs"] == expected
    deltas = [event for event in stream if event["type"].endswith("text.delta")]
    assert [entry for event in deltas for entry in event["logprobs"]] == expected


async def test_request_is_echoed_in_its_response() -> None:
    """What a response repeats of its request is what was asked."""
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    asked = body(
        instructions="I",
        temperature=0.5,
        max_output_tokens=7,
        metadata={"a": "b"},
        tools=[tool],
        tool_choice="auto",
        reasoning={"effort": "low"},
        text={"format": {"type": "json_object"}},
        truncation="auto",
        store=False,
    )
    async with MemoryGateway(FakeBackend(SAID)).client() as client:
        response = (await client.post(URL, json=asked)).json()
    Response.model_validate(response, strict=True)
    for name in ("instructions", "temperature", "max_output_tokens", "metadata", "truncation"):
        assert response[name] == asked[name]
    assert response["reasoning"]["effort"] == "low"
    assert response["text"]["format"] == {"type": "json_object"}
    assert response["tools"][0]["name"] == "f"
    assert response["store"] is False


async def test_stream_ends_with_one_failed_event_when_the_backend_breaks() -> None:
    """The failed response is the last event, with what went wrong; the whole answer is a 5xx."""
    backend = FakeBackend([Delta(0, "half")], error=BackendError("engine died"))
    async with MemoryGateway(backend).client() as client:
        stream = events(await client.post(URL, json=body(stream=True)))
        whole = await client.post(URL, json=body())
    assert stream[-1]["type"] == "response.failed"
    assert stream[-1]["response"]["error"] == {"code": "server_error", "message": "engine died"}
    assert stream[-1]["response"]["status"] == "failed"
    assert whole.status_code == 502


@pytest.mark.parametrize("stream", [False, True])
async def test_error_names_the_field_as_the_caller_wrote_it(stream: bool) -> None:
    """P09: a JSON error in both modes; chat's names are put back into this API's."""
    for param, named in (
        ("messages", "input"),
        ("messages[0].content", "instructions"),
        ("messages[1].content", "input[0].content"),
        ("max_completion_tokens", "max_output_tokens"),
        ("response_format.json_schema.schema", "text.format.schema"),
        ("tools[0].function.parameters", "tools[0].parameters"),
    ):
        pipeline = FakePipeline(error=ContextTooLong(f"{param} is wrong", param=param))
        async with MemoryGateway(FakeBackend([])).client(pipeline=pipeline) as client:
            turns = [{"role": "user", "content": "Hi"}]
            response = await client.post(
                URL, json=body(instructions="I", input=turns, stream=stream)
            )
        assert response.status_code == 400
        assert response.json()["error"]["param"] == named
        assert response.json()["error"]["code"] == "context_length_exceeded"
        assert response.json()["error"]["message"] == f"{named} is wrong"


async def test_sdk_reads_every_kind_of_answer() -> None:
    """The SDK's own accumulation agrees with its whole answers, new and cached."""
    for name in ("said", "thought", "called", "cut", "refused"):
        async with MemoryGateway(FakeBackend(ANSWERS[name])).listening() as url:
            client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
            wholes = [await client.responses.create(model="m", input="Hi") for _ in range(2)]
            seen = []
            async with client.responses.stream(model="m", input="Hi") as stream:
                async for event in stream:
                    if event.type == "response.output_text.delta":
                        seen.append(event.delta)
                    last = event
            again = await client.responses.retrieve(wholes[0].id)
            await client.responses.delete(wholes[0].id)
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(wholes[0].id)
            await client.close()
        assert again == wholes[0]
        assert "".join(seen) == wholes[0].output_text == wholes[1].output_text
        assert last.type in ("response.completed", "response.incomplete")
        final, whole = last.response.to_dict(), wholes[0].to_dict()
        assert [told(item) for item in final["output"]] == [told(i) for i in whole["output"]]
        assert (final["usage"], final["status"]) == (whole["usage"], whole["status"])


async def test_sdk_raises_its_own_errors() -> None:
    """Statuses become the SDK's classes, with param and code."""
    script: list[Event] = [Delta(0, "half")]
    backend = FakeBackend(script, error=BackendUnavailable("engine died"))
    async with MemoryGateway(backend).listening() as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        with pytest.raises(openai.NotFoundError) as caught:
            await client.responses.create(model="none", input="Hi")
        assert caught.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError) as refused:
            await client.responses.create(model="m", input="Hi", temperature=9)
        assert refused.value.param == "temperature"
        with pytest.raises(openai.InternalServerError, match="engine died"):
            await client.responses.create(model="m", input="Hi")
        async with client.responses.stream(model="m", input="Hi") as stream:
            kinds = [event.type async for event in stream]
        assert kinds[-1] == "response.failed"
        await client.close()
