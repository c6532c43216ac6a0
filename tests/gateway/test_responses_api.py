"""``/v1/responses`` in process, read by OpenAI's SDK and by the letter of its types."""

from collections.abc import Sequence
from typing import Any

import httpx
import msgspec
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.backends.base import Delta, Event, TokenLogprob, TopLogprob
from gateway.errors import BackendError, BackendUnavailable, ContextTooLong
from gateway.kept_responses import KeptResponses
from semantic_layer import MemoryRecords, StoreUnavailable
from tests.fakes.answers import ANSWERS, CALLED, SAID, STORED, TEXT, USAGE, ended
from tests.fakes.backends import FakeBackend
from tests.fakes.gateway import MemoryGateway
from tests.fakes.pipeline import FakePipeline

URL = "/v1/responses"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
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
}
REASONS = {"cut": "max_output_tokens", "filtered": "content_filter"}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": "Hi", **fields}


def events(response: httpx.Response) -> list[Any]:
    """Return the events of a stream, each one checked against the SDK's type for it."""
    assert response.status_code == 200, response.text
    found = []
    for number, text in enumerate(response.text.split("\n\n")[:-1]):
        name, data = text.split("\n")
        parsed = msgspec.json.decode(data.removeprefix("data: "))
        assert name == f"event: {parsed['type']}"
        assert parsed["sequence_number"] == number
        EVENT.validate_python(parsed, strict=True)
        found.append(parsed)
    return found


def bare(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response without what is its own: ids and times."""
    output = [{k: v for k, v in item.items() if k != "id"} for item in response["output"]]
    own = ("id", "created_at", "completed_at")
    return {**{k: v for k, v in response.items() if k not in own}, "output": output}


def told(item: dict[str, Any]) -> tuple[str, str]:
    if item["type"] == "function_call":
        return item["name"], item["arguments"]
    (part,) = item["content"]
    return part["type"], part.get("text", part.get("refusal"))


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


async def test_conversation_goes_on_when_its_last_response_is_named() -> None:
    """The chain gives the body, hence the key, of the same history sent whole."""
    async with MemoryGateway(FakeBackend(CALLED)).client() as client:
        first = (await client.post(URL, json=body(instructions="Only here."))).json()
        output = {"type": "function_call_output", "call_id": "call_0", "output": "rain"}
        second = (
            await client.post(URL, json=body(input=[output], previous_response_id=first["id"]))
        ).json()
        chained = await client.post(
            URL, json=body(input="More", previous_response_id=second["id"], stream=True)
        )
        turns = [{"role": "user", "content": "Hi"}, *first["output"], output]
        turns += [*second["output"], {"role": "user", "content": "More"}]
        whole = await client.post(URL, json=body(input=turns))
        as_chat = await client.post(
            "/v1/chat/completions",
            json={
                "model": "m",
                "messages": [
                    {"role": "user", "content": "Hi"},
                    *[_chat_turn(), {"role": "tool", "tool_call_id": "call_0", "content": "rain"}],
                    *[_chat_turn(), {"role": "user", "content": "More"}],
                ],
            },
        )
    assert chained.headers["x-strata-cache"] == "miss"
    assert whole.headers["x-strata-cache"] == as_chat.headers["x-strata-cache"] == "exact"
    assert events(chained)[-1]["response"]["previous_response_id"] == second["id"]


def _chat_turn() -> dict[str, Any]:
    function = {"name": "weather", "arguments": '{"city": "Zürich 🌧"}'}
    call = {"id": "call_0", "type": "function", "function": function}
    return {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}


async def test_response_is_kept_listed_and_deleted() -> None:
    """What was answered can be read again, with all it answers; deleted, it is gone."""
    async with MemoryGateway(FakeBackend(SAID)).client() as client:
        first = (await client.post(URL, json=body(input="One"))).json()
        stream = await client.post(
            URL, json=body(input="Two", previous_response_id=first["id"], stream=True)
        )
        second = events(stream)[-1]["response"]
        assert (await client.get(f"{URL}/{second['id']}")).json() == second
        listed = f"{URL}/{second['id']}/input_items"
        page = (await client.get(listed, params={"order": "asc"})).json()
        texts = [item["content"][0]["text"] for item in page["data"]]
        assert texts == ["One", TEXT, "Two"]
        tail = (await client.get(listed, params={"after": page["data"][-1]["id"]})).json()
        assert [item["id"] for item in tail["data"]] == [i["id"] for i in page["data"][1::-1]]
        short = (await client.get(listed, params={"limit": 1})).json()
        assert short["has_more"]
        assert (await client.delete(f"{URL}/{second['id']}")).json()["deleted"] is True
        for gone in (
            await client.get(f"{URL}/{second['id']}"),
            await client.get(listed),
            await client.delete(f"{URL}/{second['id']}"),
            await client.post(URL, json=body(previous_response_id=second["id"])),
        ):
            assert gone.status_code == 404
        assert (await client.get(f"{URL}/{first['id']}")).status_code == 200


async def test_nothing_is_kept_when_the_caller_says_so() -> None:
    """``store: false`` leaves no trace, and a failed answer neither."""
    records = MemoryRecords()
    backend = FakeBackend([Delta(0, "half")], error=BackendError("engine died"))
    for script, fields in ((FakeBackend(SAID), {"store": False}), (backend, {})):
        for stream in (False, True):
            async with MemoryGateway(script).client(responses=KeptResponses(records, 60)) as client:
                await client.post(URL, json=body(**fields, stream=stream))
    assert not records._values


async def test_item_is_found_by_its_id_when_only_that_is_sent() -> None:
    """Clients that send item_reference instead of an item they were given get the same answer."""
    async with MemoryGateway(FakeBackend(CALLED)).client() as client:
        first = (await client.post(URL, json=body())).json()
        output = {"type": "function_call_output", "call_id": "call_0", "output": "rain"}
        hi = {"role": "user", "content": "Hi"}
        sent = [hi, *first["output"], output]
        named = [hi, *({"type": "item_reference", "id": i["id"]} for i in first["output"]), output]
        whole = await client.post(URL, json=body(input=sent))
        by_name = await client.post(URL, json=body(input=named))
        lost = await client.post(URL, json=body(input=[{"id": "msg_" + "0" * 28}]))
    assert by_name.headers["x-strata-cache"] == "exact"
    assert by_name.json()["output"][1]["call_id"] == whole.json()["output"][1]["call_id"]
    assert lost.status_code == 404
    assert lost.json()["error"]["param"] == "input[0].id"


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


class _BrokenRecords(MemoryRecords):
    async def put(self, *_: Any) -> None:
        raise StoreUnavailable("down")

    async def get(self, *_: Any, **__: Any) -> list[bytes | None]:
        raise StoreUnavailable("down")


async def test_answer_is_given_when_it_cannot_be_kept() -> None:
    """A store that is down takes no answer away; only what needs it fails, as a 503."""
    kept = KeptResponses(_BrokenRecords(), 60)
    async with MemoryGateway(FakeBackend(SAID)).client(responses=kept) as client:
        assert (await client.post(URL, json=body())).status_code == 200
        assert events(await client.post(URL, json=body(stream=True)))[-1]["response"]
        refused = await client.post(URL, json=body(previous_response_id="resp_1"))
    assert refused.status_code == 503


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
