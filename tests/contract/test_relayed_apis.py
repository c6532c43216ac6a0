"""Completions and embeddings of an upstream: relayed untouched, cached, replayed as they came."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from tests.contract.client import parse_stream, until
from tests.contract.conftest import Relay
from tests.fakes.upstream import (
    DONE,
    Answer,
    Call,
    FakeUpstream,
    event,
    refusal,
    usage,
    whole,
)


def piece(text: str, *, index: int = 0, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": index, "text": text, "finish_reason": finish, **more}
    return event({"id": "c", "object": "text_completion", "choices": [choice]})


def lists(token: str, at: int) -> dict[str, Any]:
    return {
        "tokens": [token],
        "token_logprobs": [-0.5],
        "top_logprobs": [{token: -0.5, "x": -2.0}],
        "text_offset": [at],
    }


def ask(relay: Relay, path: str, **fields: Any) -> Any:
    return relay.http.post(path, json={"model": "stub-model", **fields})


def until_hit(relay: Relay, path: str, **fields: Any) -> Any:
    def hit() -> Any:
        response = ask(relay, path, **fields)
        return response if response.headers["x-strata-cache"] == "exact" else None

    return until(hit)


def test_completion_reaches_the_upstream_untouched_and_comes_back_the_same(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """P01: unknown fields both ways, logprobs as they are, whole and streamed, new and cached."""
    tokens = ["晚", "安🌙", " café", " 👩‍🚀"]
    upstream.script = lambda _: Answer(
        [
            *(piece(t, logprobs=lists(t, at), odd={"n": at}) for at, t in enumerate(tokens)),
            piece("", finish="stop", stop_reason="##"),
            event({"id": "c", "choices": [], "usage": usage(), "system_fingerprint": "fp"}),
            DONE,
        ]
    )
    fields = {"prompt": "Good", "suffix": "end", "logprobs": 1, "guided_regex": "x+"}
    first = ask(relay, "/v1/completions", **fields)
    assert first.headers["x-strata-cache"] == "miss"
    [call] = upstream.calls
    assert call.path == "/v1/completions"
    assert {name: call.body[name] for name in fields} == fields
    body = first.json()
    [choice] = body["choices"]
    assert choice["text"] == "".join(tokens)
    assert choice["logprobs"]["tokens"] == tokens
    assert (choice["stop_reason"], body["system_fingerprint"]) == ("##", "fp")
    again = until_hit(relay, "/v1/completions", **fields).json()
    for answer in (body, again):
        del answer["id"], answer["created"]
    assert again == body
    streamed = ask(relay, "/v1/completions", **fields, stream=True)
    read = parse_stream(streamed.status_code, streamed.headers, streamed.content)
    assert read.cache == "exact"
    texts = [part["text"] for chunk in read.chunks for part in chunk["choices"]]
    assert "".join(texts) == "".join(tokens)
    assert len(upstream.calls) == 1


def test_every_prompt_needs_its_finish_when_the_upstream_answers_several(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """Two prompts with two choices are four; three finished ones are a broken answer."""
    parts = [piece(f"t{index}", index=index, finish="stop") for index in range(4)]
    upstream.script = lambda _: Answer([*parts, DONE])
    four = ask(relay, "/v1/completions", prompt=["a", "b"], n=2)
    assert [choice["text"] for choice in four.json()["choices"]] == ["t0", "t1", "t2", "t3"]
    upstream.script = lambda _: Answer([*parts[:3], DONE])
    assert ask(relay, "/v1/completions", prompt=["a", "c"], n=2).status_code == 502


def test_sound_is_asked_for_whole_when_the_client_wants_it_whole(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """Upstreams stream sound in other formats than they send it whole."""
    audio = {"id": "a1", "data": "UklGRg==", "transcript": "Hi.", "expires_at": 9}
    upstream.script = lambda _: whole("", audio=audio)
    fields = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
    first = relay.seed("Say hi.", **fields).json()
    assert upstream.calls[0].body["stream"] is False
    assert first["choices"][0]["message"]["audio"] == audio
    again = relay.answer("Say hi.", **fields)
    assert again.headers["x-strata-cache"] == "exact"
    assert again.json()["choices"] == first["choices"]


def embedded(call: Call) -> Answer:
    """Give each text a vector of its length, numbered backwards."""
    data = [
        {"object": "embedding", "index": at, "embedding": [len(text), 0.5, -1.25]}
        for at, text in enumerate(call.body["input"])
    ]
    body = {"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 7 * len(data)}}
    return Answer([json.dumps(body).encode()], headers={"content-type": "application/json"})


def test_only_new_inputs_reach_the_upstream_and_order_is_kept(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """Cached and new inputs are mixed; the upstream sees the new ones once, fields untouched."""
    upstream.script = embedded
    first = ask(relay, "/v1/embeddings", input=["a", "bb"], dimensions=3, task="query", user="u")
    assert first.headers["x-strata-cache"] == "miss"
    assert upstream.calls[0].path == "/v1/embeddings"
    sent = upstream.calls[0].body
    assert (sent["dimensions"], sent["task"], sent["user"]) == (3, "query", "u")
    fields = {"dimensions": 3, "task": "query"}
    until_hit(relay, "/v1/embeddings", input="bb", **fields)
    mixed = ask(relay, "/v1/embeddings", input=["cccc", "bb", "ddd", "cccc", "a"], **fields)
    assert upstream.calls[-1].body["input"] == ["cccc", "ddd"]
    assert [row["embedding"][0] for row in mixed.json()["data"]] == [4, 2, 3, 4, 1]
    assert [row["index"] for row in mixed.json()["data"]] == [0, 1, 2, 3, 4]
    again = until_hit(relay, "/v1/embeddings", input=["cccc", "bb", "ddd", "cccc", "a"], **fields)
    assert again.json() == mixed.json()
    assert first.json()["usage"]["prompt_tokens"] == 14
    other = ask(relay, "/v1/embeddings", input="bb", dimensions=2, task="query")
    assert other.headers["x-strata-cache"] == "miss"
    coded = ask(relay, "/v1/embeddings", input="bb", encoding_format="base64", **fields)
    [row] = coded.json()["data"]
    assert np.frombuffer(base64.b64decode(row["embedding"]), "<f4").tolist() == [2, 0.5, -1.25]
    tokens = ask(relay, "/v1/embeddings", input=[[1, 2], [3]])
    assert [row["embedding"][0] for row in tokens.json()["data"]] == [2, 1]


BAD = {
    "not JSON": b"oops",
    "a vector too few": b'{"data":[]}',
    "numbered wrongly": b'{"data":[{"index":1,"embedding":[1.0]}]}',
    "an empty vector": b'{"data":[{"index":0,"embedding":[]}]}',
    "bad base64": b'{"data":[{"index":0,"embedding":"AAA"}]}',
}


@pytest.mark.parametrize("name", BAD)
def test_broken_embeddings_are_a_clear_error_and_not_stored(
    relay: Relay, upstream: FakeUpstream, name: str
) -> None:
    """What is no vector is 502; the next request asks again."""
    headers = {"content-type": "application/json"}
    upstream.script = lambda _: Answer([BAD[name]], headers=headers)
    assert ask(relay, "/v1/embeddings", input="text").status_code == 502
    upstream.script = embedded
    good = ask(relay, "/v1/embeddings", input="text")
    assert (good.status_code, good.headers["x-strata-cache"]) == (200, "miss")


def test_refusal_of_the_upstream_is_relayed_whole(relay: Relay, upstream: FakeUpstream) -> None:
    """Status and body are the upstream's, and null is what the envelope lacks."""
    fault = {"error": {"message": "too long", "type": "invalid_request_error", "param": "input"}}
    upstream.script = lambda _: refusal(400, fault)
    response = ask(relay, "/v1/embeddings", input="text")
    whole = {"error": {**fault["error"], "code": None}}
    assert (response.status_code, response.json()) == (400, whole)
