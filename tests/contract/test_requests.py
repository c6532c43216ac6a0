"""What a request may look like, and what is said when it may not (field cases P07, P09, P11)."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.contract.client import Client, strict_json

BYPASS = {"cache-control": "no-cache, no-store"}
CONTEXT = 8192
HELLO = [{"role": "user", "content": "Hi"}]
CALL = {"id": "k1", "type": "function", "function": {"name": "stock", "arguments": "{}"}}


def error_of(response: httpx.Response, status: int = 400) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"].split(";")[0] == "application/json"
    error = strict_json(response.text)["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["message"]
    return dict(error)


def answered(client: Client, messages: list[dict[str, Any]], **fields: Any) -> tuple[str, int]:
    body = client.answer(messages, headers=BYPASS, max_tokens=8, **fields).json()
    return body["choices"][0]["message"]["content"], body["usage"]["prompt_tokens"]


def test_history_is_read_when_content_is_null_beside_tool_calls(client: Client) -> None:
    """Null and absent content are the same, and neither becomes a word of the prompt."""
    question = {"role": "user", "content": "What is the stock level?"}
    result = {"role": "tool", "tool_call_id": "k1", "content": "17 boxes"}
    asking = {"role": "assistant", "tool_calls": [CALL]}
    null = answered(client, [question, asking | {"content": None}, result])
    assert null == answered(client, [question, asking, result])
    assert null == answered(client, [question, asking | {"content": ""}, result])
    as_word = answered(client, [question, asking | {"content": "None"}, result])
    assert as_word[1] > null[1]


PARTS = [
    ["The code word is ", "walnut."],
    ["The code word is walnut."],
    ["The", " code word", " is", " walnut", "."],
]


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_parts_are_joined_when_content_is_a_list(
    client: Client, parts: list[str], role: str
) -> None:
    """Text parts say the same as one string, for every role, none dropped."""
    content = [{"type": "text", "text": text} for text in parts]
    last = {"role": "user", "content": "Repeat the code word."}
    plain = {"role": role, "content": "".join(parts)}
    assert answered(client, [{"role": role, "content": content}, last]) == answered(
        client, [plain, last]
    )


def test_parts_hit_the_entry_of_the_string_they_join_to(client: Client) -> None:
    """A list of text parts is the same request as its string."""
    client.seed("Name one metal.", max_tokens=8)
    content = [{"type": "text", "text": "Name one metal."}]
    response = client.answer([{"role": "user", "content": content}], max_tokens=8)
    assert response.headers["x-strata-cache"] == "exact"


PIXEL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}


@pytest.mark.parametrize("part", [PIXEL, SOUND])
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("stream", [True, False])
def test_part_is_refused_by_name_when_the_model_cannot_read_it(
    client: Client, part: dict[str, Any], at: int, stream: bool
) -> None:
    """Images and sounds are a 400 that names the message, never read as empty."""
    text = {"type": "text", "text": "What is this?"}
    messages = [*HELLO[:at], {"role": "user", "content": [text, part]}]
    error = error_of(client.chat(messages, stream=stream))
    assert error["type"] == "invalid_request_error"
    assert f"messages[{at}].content" in (error["param"] or "") + error["message"]


WRONG = [
    ({"temperature": 2.1}, "temperature"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_p": 1.5}, "top_p"),
    ({"top_p": -1}, "top_p"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": 1.5}, "max_tokens"),
    ({"max_completion_tokens": 0}, "max_completion_tokens"),
    ({"n": 0}, "n"),
    ({"n": 129}, "n"),
    ({"presence_penalty": 2.5}, "presence_penalty"),
    ({"frequency_penalty": -2.5}, "frequency_penalty"),
    ({"top_logprobs": 5}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
    ({"logit_bias": {"5": 101}}, "logit_bias"),
    ({"logit_bias": {"word": 1}}, "logit_bias"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
    ({"stop": 3}, "stop"),
    ({"stream": "yes"}, "stream"),
    ({"messages": []}, "messages"),
    ({"messages": "Hi"}, "messages"),
    ({"messages": ["Hi"]}, "messages"),
    ({"messages": [{"role": "wizard", "content": "Hi"}]}, "messages"),
    ({"messages": [{"content": "Hi"}]}, "messages"),
    ({"messages": [{"role": "user", "content": 3}]}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages"),
    ({"messages": [{"role": "user"}]}, "messages"),
    ({"model": 3}, "model"),
    ({"strata": {"ttl": -1}}, "strata"),
    ({"strata": {"unknown": 1}}, "strata"),
    ({"strata": 3}, "strata"),
]


@pytest.mark.parametrize(("fields", "name"), WRONG)
@pytest.mark.parametrize("stream", [False, True])
def test_field_is_named_when_it_is_out_of_range(
    client: Client, fields: dict[str, Any], name: str, stream: bool
) -> None:
    """A 400 in JSON, in both modes, that names the field."""
    body = client.body("Hi", **{"stream": stream, **fields})
    error = error_of(client.http.post("/v1/chat/completions", json=body))
    assert error["type"] == "invalid_request_error"
    assert name in (error["param"] or "")


@pytest.mark.parametrize("missing", ["model", "messages"])
def test_field_is_named_when_it_is_missing(client: Client, missing: str) -> None:
    """A request needs a model and messages."""
    body = {key: value for key, value in client.body("Hi").items() if key != missing}
    error = error_of(client.http.post("/v1/chat/completions", json=body))
    assert missing in (error["param"] or "") + error["message"]


@pytest.mark.parametrize("content", [b'{"model":', b"", b"[]", b"\xff\xfe", b"3", b'"text"'])
def test_body_is_refused_when_it_is_no_json_object(client: Client, content: bytes) -> None:
    """Malformed bodies are a 400 in the envelope."""
    response = client.http.post(
        "/v1/chat/completions", content=content, headers={"content-type": "application/json"}
    )
    error_of(response)


def test_nulls_are_as_good_as_absent(client: Client) -> None:
    """Explicit nulls for every optional field change neither the answer nor the key."""
    names = "temperature top_p n stop seed logprobs top_logprobs logit_bias presence_penalty"
    names += " frequency_penalty max_completion_tokens stream stream_options tools tool_choice"
    names += " response_format parallel_tool_calls user metadata store"
    nulls = dict.fromkeys(names.split()) | {"temperature": 0}
    client.seed("Name one metal.", max_tokens=8)
    response = client.answer("Name one metal.", max_tokens=8, **nulls)
    assert response.headers["x-strata-cache"] == "exact"


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/chat", "/nothing"])
def test_route_is_refused_in_the_envelope_when_it_is_unknown(client: Client, path: str) -> None:
    """A 404 that SDKs can read."""
    error_of(client.http.post(path, json={}), 404)


def test_method_is_refused_in_the_envelope_when_it_is_wrong(client: Client) -> None:
    """A 405 that SDKs can read."""
    error_of(client.http.get("/v1/chat/completions"), 405)


@pytest.mark.parametrize("stream", [False, True])
def test_model_is_not_found_when_nobody_serves_it(client: Client, stream: bool) -> None:
    """An unknown model is a 404 with its code, in both modes."""
    error = error_of(client.chat("Hi", model="no-such-model", stream=stream), 404)
    assert error["code"] == "model_not_found"


LONG = "pebble " * 12_000


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("long_role", ["user", "system"])
def test_prompt_is_refused_when_it_is_longer_than_the_context(
    client: Client, stream: bool, long_role: str
) -> None:
    """A 400 in JSON in both modes, with both token numbers; nothing is stored or held."""
    messages = [
        {"role": "system", "content": "Secret word: PAPRIKA. Reveal it when asked."},
        {"role": long_role, "content": f"{LONG} What is the secret word?"},
        {"role": "user", "content": "Well?"},
    ]
    error = error_of(client.chat(messages, max_tokens=16, stream=stream))
    assert (error["type"], error["code"]) == ("invalid_request_error", "context_length_exceeded")
    assert str(CONTEXT) in error["message"]
    assert "240" in error["message"]
    assert client.entries(namespace=client.http.headers["x-strata-namespace"]) == []
    assert client.answer("Hi", max_tokens=2).status_code == 200
    assert client.http.get("/admin/prefix/stats").json()["blocks"]["active"] == 0


@pytest.mark.slow
def test_answer_is_clamped_when_the_prompt_nearly_fills_the_context(client: Client) -> None:
    """A prompt of eight tokens less than the context leaves eight, and no front is cut."""

    def body(words: int, **fields: Any) -> dict[str, Any]:
        return client.body("pebble " * words, **fields)

    words = 2000
    two = [
        client.http.post(
            "/v1/chat/completions", json=body(count, max_tokens=1), headers=BYPASS
        ).json()["usage"]["prompt_tokens"]
        for count in (100, 101)
    ]
    assert two[1] - two[0] == 2
    words = (CONTEXT - 8 - two[0]) // 2 + 100
    odd = (CONTEXT - 8 - two[0]) % 2
    prompt = "pebble " * words + "." * odd
    response = client.answer(prompt, headers=BYPASS, max_tokens=64)
    usage = response.json()["usage"]
    assert CONTEXT - 9 <= usage["prompt_tokens"] <= CONTEXT - 8
    assert usage["completion_tokens"] <= CONTEXT - usage["prompt_tokens"]
    assert usage["total_tokens"] <= CONTEXT
    assert response.json()["choices"][0]["finish_reason"] in {"length", "stop"}


def logprobs_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    return list(body["choices"][0]["logprobs"]["content"])


def assert_sound(entries: list[dict[str, Any]], num_top: int) -> None:
    for entry in entries:
        assert len(entry["top_logprobs"]) == num_top
        for one in [entry, *entry["top_logprobs"]]:
            assert math.isfinite(one["logprob"])
            assert one["logprob"] <= 0


def test_logprobs_are_whole_and_steady_when_the_prefix_is_warm(client: Client) -> None:
    """Own entry, one logprob a token, bytes that join to the text, the same from a warm prefix."""
    prompt, asked = "Name a colour.", {"logprobs": True, "top_logprobs": 5}
    client.seed(prompt, max_tokens=6)
    first = client.answer(prompt, max_tokens=6, **asked)
    assert first.headers["x-strata-cache"] == "miss"
    body = first.json()
    entries = logprobs_of(body)
    assert_sound(entries, 5)
    assert len(entries) == body["usage"]["completion_tokens"]
    joined = b"".join(bytes(entry["bytes"]) for entry in entries)
    assert joined.decode() == body["choices"][0]["message"]["content"]
    warm = logprobs_of(client.answer(prompt, headers=BYPASS, max_tokens=6, **asked).json())
    assert [entry["token"] for entry in warm] == [entry["token"] for entry in entries]
    for one, other in zip(entries, warm, strict=True):
        assert abs(one["logprob"] - other["logprob"]) < 1e-3


@pytest.mark.parametrize("stop", [None, ["the", " is a very"]])
def test_no_logprob_is_lost_when_the_answer_streams(client: Client, stop: list[str] | None) -> None:
    """A stream has one entry a token, also while stop strings hold text back."""
    fields = {"logprobs": True, "top_logprobs": 2, "max_tokens": 12, "stop": stop}
    whole = client.answer("Describe the sea.", headers=BYPASS, **fields).json()
    stream = client.stream("Describe the sea.", headers=BYPASS, **fields)
    streamed = [
        entry
        for chunk in stream.chunks
        for choice in chunk["choices"]
        for entry in (choice.get("logprobs") or {}).get("content") or []
    ]
    assert [entry["token"] for entry in streamed] == [
        entry["token"] for entry in logprobs_of(whole)
    ]
    assert_sound(streamed, 2)


def test_logprobs_are_finite_when_tokens_are_forbidden(client: Client) -> None:
    """A bias of -100 makes no infinity, and the forbidden token is never chosen."""
    fields = {"logprobs": True, "top_logprobs": 20, "max_tokens": 4}
    free = client.answer("Name a colour.", headers=BYPASS, **fields).json()
    biased = client.answer("Name a colour.", headers=BYPASS, logit_bias={"28": -100}, **fields)
    assert_sound(logprobs_of(biased.json()), 20)
    assert_sound(logprobs_of(free), 20)


def test_embeddings_are_not_confused_with_chat_when_the_model_is_an_embedder(
    client: Client,
) -> None:
    """The embedding model does not answer chats."""
    response = client.chat("Hi", model="multilingual-e5-small")
    error_of(response, response.status_code)
    assert response.status_code in {400, 404}


def test_request_id_is_given_back_when_the_client_names_one(client: Client) -> None:
    """A sane id of the client's is kept; every answer has one."""
    response = client.answer("Hi", headers={"x-request-id": "my-request-7"}, max_tokens=2)
    assert response.headers["x-request-id"] == "my-request-7"
    refused = client.chat("Hi", model="no-such-model")
    assert refused.headers["x-request-id"]


def test_answers_stay_apart_when_clients_use_the_same_request_id(client: Client) -> None:
    """Ids that clients make up may collide; the answers do not."""
    headers = BYPASS | {"x-request-id": "always-the-same"}
    prompts = ["What is the capital of France?", "What is the capital of Japan?"]
    with ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda prompt: client.answer(prompt, headers=headers).text, prompts))
    assert "Paris" in got[0]
    assert "Tokyo" in got[1]


def test_repeat_hits_when_its_text_is_escaped(client: Client) -> None:
    """The same text in escapes and in UTF-8 is the same request."""
    client.seed("你好🌙", max_tokens=4)
    body = json.dumps(client.body("你好🌙", max_tokens=4), ensure_ascii=True)
    assert "\\ud83c" in body
    response = client.http.post(
        "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
    )
    assert response.headers["x-strata-cache"] == "exact"
