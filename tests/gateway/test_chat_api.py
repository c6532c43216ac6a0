"""``POST /v1/chat/completions`` in process: shapes, streams, headers, errors."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from gateway.auth import KeyRing
from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob, TopLogprob, Usage
from gateway.call import CacheReport
from gateway.errors import BackendError, BackendUnavailable, ContextTooLong, UpstreamStatus
from gateway.keys_file import add_key
from gateway.settings import Settings
from semantic_layer import Judgement
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import QUIET, MemoryGateway
from tests.fakes.pipeline import FakePipeline

URL = "/v1/chat/completions"
HI = {"role": "user", "content": "Hi"}
TEXT = "晚安🌙 café 👩‍🚀"


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [HI], **fields}


def events(response: httpx.Response) -> list[Any]:
    """Return the JSON events of a stream that ends in one [DONE]."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in response.text.split("\n\n") if line]
    assert all(line.startswith("data: ") and "\n" not in line for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert lines.count("data: [DONE]") == 1
    return [msgspec.json.decode(line.removeprefix("data: ")) for line in lines[:-1]]


def joined(chunks: list[Any], index: int = 0) -> str:
    return "".join(
        choice["delta"].get("content") or ""
        for chunk in chunks
        for choice in chunk["choices"]
        if choice["index"] == index
    )


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with MemoryGateway(FakeBackend(whole(TEXT))).client() as client:
        yield client


async def faked(pipeline: FakePipeline, **fields: Any) -> httpx.Response:
    """Ask a gateway whose pipeline is a fake."""
    headers = fields.pop("headers", None)
    async with MemoryGateway(FakeBackend([])).client(pipeline=pipeline) as client:
        return await client.post(URL, json=body(**fields), headers=headers)


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


async def test_call_carries_what_headers_and_body_say() -> None:
    """Tenant, namespace, control, and a body without the strata field reach the pipeline."""
    pipeline = FakePipeline()
    headers = {"x-strata-namespace": "blue", "cache-control": "no-store", "x-request-id": "my-1"}
    response = await faked(pipeline, headers=headers, strata={"query": "q"}, seed=None, top_k=3)
    assert response.headers["x-request-id"] == "my-1"
    call = pipeline.call
    assert (call.request_id, call.tenant.name, call.namespace) == ("my-1", "public", "blue")
    assert call.control.no_store
    assert call.control.query_text == "q"
    assert call.body == body(top_k=3)


@pytest.mark.parametrize("sent", ["a b", "x" * 200, "ü", ""])
async def test_request_id_is_ours_when_the_clients_is_not_plain(sent: str) -> None:
    """Nothing odd gets into logs and headers."""
    response = await faked(FakePipeline(), headers={"x-request-id": sent.encode()})
    assert response.headers["x-request-id"].startswith("req-")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ContextTooLong("24002 tokens, 8192 fit"), 400, "context_length_exceeded"),
        (BackendUnavailable("engine restarts"), 503, "backend_unavailable"),
        (RuntimeError("our bug: secret"), 500, "internal_error"),
    ],
)
async def test_error_is_a_status_when_it_comes_before_the_first_byte(
    error: Exception, status: int, code: str, stream: bool
) -> None:
    """P09: both modes answer with JSON and the right status; nothing internal leaks."""
    response = await faked(FakePipeline(error=error), stream=stream)
    assert response.status_code == status
    assert response.headers["content-type"].startswith("application/json")
    assert response.json()["error"]["code"] == code
    assert response.headers["x-request-id"]
    assert "secret" not in response.text
    assert ("retry-after" in response.headers) == (status == 503)


async def test_upstreams_error_is_relayed_when_it_gave_one() -> None:
    """Status, body and rate-limit headers of the upstream reach the client."""
    error = UpstreamStatus(429, {"error": {"message": "slow down"}}, {"retry-after": "7"})
    response = await faked(FakePipeline(error=error))
    assert response.status_code == 429
    assert response.json() == {"error": {"message": "slow down"}}
    assert response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    ("error", "code"),
    [(BackendError("engine died"), "backend_error"), (RuntimeError("secret"), "internal_error")],
)
async def test_error_is_an_event_when_it_comes_after_the_first_byte(
    error: Exception, code: str
) -> None:
    """The stream tells the error and ends, without any finish_reason; the whole answer is a 5xx."""
    backend = FakeBackend([Delta(0, "half an ans")], error=error)
    async with MemoryGateway(backend).client() as client:
        response = await client.post(URL, json=body(stream=True))
        whole_one = await client.post(URL, json=body())
    *chunks, last = events(response)
    assert last["error"]["code"] == code
    assert "secret" not in response.text
    assert joined(chunks) == "half an ans"
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)
    assert whole_one.status_code >= 500
    assert whole_one.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("request_", "status", "param"),
    [
        ({"content": b'{"model":'}, 400, None),
        ({"content": b""}, 400, None),
        ({"content": b"[]"}, 400, None),
        ({"json": body(temperature=3)}, 400, "temperature"),
        ({"json": body(max_tokens=0)}, 400, "max_tokens"),
        ({"json": body(max_tokens=-1)}, 400, "max_tokens"),
        ({"json": body(messages=[])}, 400, "messages"),
        ({"json": {"messages": [HI]}}, 400, "model"),
        ({"json": body(model="no-such-model")}, 404, "model"),
        ({"json": body(), "headers": {"x-strata-ttl": "x"}}, 400, "x-strata-ttl"),
        ({"json": body(), "headers": {"x-strata-intent": "x"}}, 400, "x-strata-intent"),
        ({"json": body(), "headers": {"content-type": "text/plain"}}, 400, "content-type"),
        ({"json": body(), "headers": {"content-encoding": "gzip"}}, 415, "content-encoding"),
    ],
)
async def test_request_is_refused_when_it_is_wrong(
    client: httpx.AsyncClient, request_: dict[str, Any], status: int, param: str | None
) -> None:
    """P09: each is a JSON error naming the field, and the next good request succeeds."""
    headers = {"content-type": "application/json", **request_.pop("headers", {})}
    response = await client.post(URL, **request_, headers=headers)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["code"] == "model_not_found") == (status == 404)
    assert (await client.post(URL, json=body())).status_code == 200


@pytest.mark.parametrize("announced", [True, False])
async def test_body_is_refused_when_it_is_too_large(announced: bool) -> None:
    """The limit holds whether the length is announced or not."""
    settings = Settings(max_body_bytes=200, log=QUIET.log)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(30):
            yield b" " * 10

    content = b" " * 300 if announced else chunks()
    async with MemoryGateway(FakeBackend([]), settings).client() as client:
        headers = {"content-type": "application/json"}
        response = await client.post(URL, content=content, headers=headers)
        assert response.status_code == 413
        assert response.json()["error"]["type"] == "invalid_request_error"


async def test_key_is_asked_for_when_there_is_a_keys_file(tmp_path: Path) -> None:
    """Missing and unknown keys are 401 with a challenge; a known one is its tenant."""
    path = tmp_path / "keys.toml"
    _, key = add_key(path, "acme")
    pipeline = FakePipeline()
    gateway = MemoryGateway(FakeBackend([]))
    async with gateway.client(pipeline=pipeline, key_ring=KeyRing(path)) as client:
        for headers in ({}, {"authorization": "Bearer nope"}):
            response = await client.post(URL, json=body(), headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith("Bearer")
            assert response.json()["error"]["code"] == "invalid_api_key"
        assert not pipeline.calls
        for headers in ({"authorization": f"Bearer {key}"}, {"x-api-key": key}):
            assert (await client.post(URL, json=body(), headers=headers)).status_code == 200
            assert pipeline.call.tenant.name == "acme"
        assert (await client.get("/v1/models")).status_code == 401
        assert (await client.get("/health/live")).status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_method_is_refused_when_the_route_has_another(
    client: httpx.AsyncClient, method: str
) -> None:
    """405 in the envelope, naming what is allowed."""
    response = await client.request(method, URL)
    assert response.status_code == 405
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert "POST" in response.headers["allow"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v1/chat/completions/x"])
async def test_route_is_named_when_it_is_unknown(client: httpx.AsyncClient, path: str) -> None:
    """404 in the envelope."""
    response = await client.post(path, json={})
    assert response.status_code == 404
    assert path in response.json()["error"]["message"]
    assert response.headers["x-request-id"]


async def test_counters_sum_to_requests_when_requests_end_in_every_way() -> None:
    """Good, refused and failed requests are counted once each."""
    gateway = MemoryGateway(FakeBackend(whole("x")))
    async with gateway.client() as client:
        await client.post(URL, json=body())
        await client.post(URL, json=body())
        await client.post(URL, json=body(), headers={"cache-control": "no-cache, no-store"})
        await client.post(URL, json=body(model="nobody"))
        await client.post(URL, json=body(temperature=9))
        metrics = (await client.get("/metrics")).text
    shown = gateway.parts.stats.snapshot()
    assert shown["outcomes"] == {"miss": 1, "exact": 1, "bypass": 1, "error": 1}
    assert shown["rejected"] == 1
    counted = [
        float(line.rpartition(" ")[2])
        for line in metrics.splitlines()
        if line.startswith("strata_requests_total{")
    ]
    assert sum(counted) == 5


def test_documentation_lists_the_routes() -> None:
    """The schema names the public and the admin routes."""
    schema = MemoryGateway(FakeBackend([])).app().openapi_schema.to_schema()
    assert {URL, "/v1/models", "/admin/cache/entries", "/admin/stats"} <= set(schema["paths"])
    assert "ChatRequest" in str(schema["paths"][URL]["post"]["requestBody"])
