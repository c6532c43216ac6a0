"""``POST /v1/chat/completions`` in process: shapes, streams and headers of answers."""

from typing import Any

import httpx
import msgspec
import pytest

from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob, TopLogprob, Usage
from gateway.call import CacheReport
from semantic_layer import Judgement
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway
from tests.fakes.pipeline import FakePipeline
from tests.gateway.chat import TEXT, URL, body, events, faked, joined


async def test_answer_has_the_shape_of_openai_when_it_is_whole(client: httpx.AsyncClient) -> None:
    """Every field a client reads is there, with its right value."""
    response = await client.post(URL, json=body())
    answer = response.json()
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert answer.pop("id").startswith("chatcmpl-")
    assert answer.pop("created") > 1_700_000_000
    assert answer == {
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": TEXT, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": len(TEXT),
            "total_tokens": 7 + len(TEXT),
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }


async def test_stream_follows_the_protocol_when_it_is_read_event_by_event(
    client: httpx.AsyncClient,
) -> None:
    """P05: one role, one finish_reason, one id, one [DONE]; null elsewhere, never ''."""
    for _ in ("miss", "exact"):
        chunks = events(await client.post(URL, json=body(stream=True)))
        choices = [chunk["choices"][0] for chunk in chunks]
        assert joined(chunks) == TEXT
        assert choices[0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
        assert all("role" not in choice["delta"] for choice in choices[1:])
        assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)
        assert choices[-1]["finish_reason"] == "stop"
        assert choices[-1]["delta"] == {}
        assert {choice["index"] for choice in choices} == {0}
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
        for name in ("id", "created", "model"):
            assert len({chunk[name] for chunk in chunks}) == 1
        assert not any("usage" in chunk for chunk in chunks)


async def test_usage_is_one_last_event_when_it_is_asked_for(client: httpx.AsyncClient) -> None:
    """P03: usage comes once, with no choices, the same for miss, hit and whole answer."""
    asked = body(stream=True, stream_options={"include_usage": True})
    seen = []
    for outcome in ("miss", "exact"):
        response = await client.post(URL, json=asked)
        assert response.headers["x-strata-cache"] == outcome
        chunks = events(response)
        assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
        assert chunks[-1]["choices"] == []
        seen.append(chunks[-1]["usage"])
    seen.append((await client.post(URL, json=body())).json()["usage"])
    assert seen[0] == seen[1] == seen[2]
    assert seen[0]["total_tokens"] == seen[0]["prompt_tokens"] + seen[0]["completion_tokens"]
    silent = body(stream=True, stream_options={"include_usage": False})
    assert not any("usage" in chunk for chunk in events(await client.post(URL, json=silent)))


async def test_replay_is_new_in_name_only_when_the_answer_was_cached(
    client: httpx.AsyncClient,
) -> None:
    """A hit has its own id, and the same content and usage."""
    first, second = [(await client.post(URL, json=body())).json() for _ in range(2)]
    assert first["id"] != second["id"]
    assert first["choices"] == second["choices"]
    assert first["usage"] == second["usage"]


@pytest.mark.parametrize(("pace", "at_once"), [(0.0, True), (1e6, False)])
async def test_stored_stream_is_sent_in_one_piece_unless_it_has_a_pace(
    pace: float, at_once: bool
) -> None:
    """The first byte and the last come together, with every event of the stream in its place."""
    gateway = MemoryGateway(FakeBackend(whole("word " * 60)))
    gateway.parts.pipeline.replay_tokens_per_s = pace
    sizes: list[int] = []

    async def counted(scope: Any, receive: Any, send: Any) -> None:
        async def count(message: Any) -> None:
            if message["type"] == "http.response.body":
                sizes.append(len(message["body"]))
            await send(message)

        await app(scope, receive, count)

    app = gateway.app()
    async with gateway.client() as client:
        await client.post(URL, json=body())
        assert await gateway.write_back.drain(30)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(counted), base_url="http://127.0.0.1:8000"
    ) as client:
        streamed = await client.post(URL, json=body(stream=True))
    assert streamed.headers["x-strata-cache"] == "exact"
    assert joined(events(streamed)) == "word " * 60
    assert (len(sizes) == 1) is at_once


async def test_choices_stay_apart_when_there_are_several() -> None:
    """Each choice has its own role, text and finish."""
    script: list[Event] = [
        Delta(1, "b"), Delta(0, "a"), Delta(1, "B"), Finish(1, "length"), Delta(0, "A"),
        Finish(0, "stop"), Final(Usage(3, 4, 0)),
    ]  # fmt: skip
    async with MemoryGateway(FakeBackend(script)).client() as client:
        chunks = events(await client.post(URL, json=body(n=2, stream=True)))
        answer = (await client.post(URL, json=body(n=2))).json()
    for index, text, reason in ((0, "aA", "stop"), (1, "bB", "length")):
        mine = [c for chunk in chunks for c in chunk["choices"] if c["index"] == index]
        assert joined(chunks, index) == text
        assert [c["delta"].get("role") for c in mine] == ["assistant"] + [None] * (len(mine) - 1)
        assert [c["finish_reason"] for c in mine] == [None] * (len(mine) - 1) + [reason]
        assert answer["choices"][index]["message"]["content"] == text
        assert answer["choices"][index]["finish_reason"] == reason


async def test_tool_calls_are_relayed_when_the_backend_makes_them() -> None:
    """Deltas keep their index; the whole answer has none, and content is null."""
    opening = {
        "index": 0,
        "id": "k",
        "type": "function",
        "function": {"name": "f", "arguments": ""},
    }
    more = {"index": 0, "function": {"arguments": "{}"}}
    script: list[Event] = [
        Delta(0, tool_calls=[opening]), Delta(0, tool_calls=[more]), Finish(0, "tool_calls"),
        Final(Usage(3, 4, 0)),
    ]  # fmt: skip
    async with MemoryGateway(FakeBackend(script)).client() as client:
        for _ in range(2):
            chunks = events(await client.post(URL, json=body(stream=True)))
            calls = [
                c for chunk in chunks for c in chunk["choices"][0]["delta"].get("tool_calls", [])
            ]
            assert {call["index"] for call in calls} == {0}
            assert "".join(call["function"].get("arguments", "") for call in calls) == "{}"
        choice = (await client.post(URL, json=body())).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"] == [
        {"id": "k", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]


async def test_logprobs_are_complete_when_they_are_given() -> None:
    """Each token's entry reaches the client in both modes, in OpenAI's shape."""
    entries = [TokenLogprob(c, -0.5, list(c.encode()), [TopLogprob(c, -0.5)]) for c in "ab"]
    script: list[Event] = [
        Delta(0, "a", logprobs=entries[:1]), Delta(0, "b", logprobs=entries[1:]),
        Finish(0, "stop"), Final(Usage(3, 2, 0)),
    ]  # fmt: skip
    expected = [msgspec.to_builtins(entry) for entry in entries]
    asked = {"logprobs": True, "top_logprobs": 1}
    async with MemoryGateway(FakeBackend(script)).client() as client:
        chunks = events(await client.post(URL, json=body(stream=True, **asked)))
        answer = (await client.post(URL, json=body(**asked))).json()
    assert answer["choices"][0]["logprobs"] == {"content": expected, "refusal": None}
    streamed = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    assert [e for one in streamed if one for e in one["content"]] == expected


async def test_unknown_delta_fields_are_relayed_when_an_upstream_sends_them() -> None:
    """Reasoning text and the like pass through, whole and streamed."""
    script: list[Event] = [
        Delta(0, extra={"reasoning_content": "hm"}), Delta(0, "x"), Finish(0, "stop"),
        Final(Usage(1, 1, 0)),
    ]  # fmt: skip
    async with MemoryGateway(FakeBackend(script)).client() as client:
        chunks = events(await client.post(URL, json=body(stream=True)))
        answer = (await client.post(URL, json=body())).json()
    assert {"reasoning_content": "hm"} in [chunk["choices"][0]["delta"] for chunk in chunks]
    message = answer["choices"][0]["message"]
    assert message["reasoning_content"] == "hm"
    assert message["content"] == "x"


@pytest.mark.parametrize("stream", [False, True])
async def test_cache_headers_are_there_when_a_hit_is_served(stream: bool) -> None:
    """The contract's headers stand on both kinds of answer."""
    judgement = Judgement("factual", 0.95, 0.971234567, 0.9912)
    report = CacheReport("semantic", judgement, "ab" * 32, 61.9, coalesced=False)
    response = await faked(FakePipeline(report=report), stream=stream)
    assert {
        k: v for k, v in response.headers.items() if k.startswith("x-strata") or k == "age"
    } == {
        "x-strata-cache": "semantic",
        "x-strata-intent": "factual",
        "x-strata-threshold": "0.95",
        "x-strata-similarity": "0.971235",
        "x-strata-score": "0.9912",
        "x-strata-entry": "ab" * 32,
        "age": "61",
    }


async def test_coalesced_is_told_when_another_request_paid() -> None:
    """Only then is the header there."""
    report = CacheReport("miss", Judgement(), coalesced=True)
    assert (await faked(FakePipeline(report=report))).headers["x-strata-coalesced"] == "1"
    assert "x-strata-coalesced" not in (await faked(FakePipeline())).headers
