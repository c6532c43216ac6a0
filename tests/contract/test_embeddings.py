"""``/v1/embeddings`` over the bundled model: shapes, order, cache, refusals."""

import base64
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from tests.contract.client import CHAT_MODEL, Client, until
from tests.contract.conftest import StartStack

MODEL = "multilingual-e5-small"
TEXTS = ["What is the capital of France?", "怎样煮鸡蛋？", "晚安🌙 café"]


def ask(client: Client, given: Any, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    body = {"model": MODEL, "input": given, **fields}
    return client.http.post("/v1/embeddings", json=body, headers=headers or {})


def vectors(response: httpx.Response) -> np.ndarray[Any, Any]:
    assert response.status_code == 200, response.text
    data = response.json()["data"]
    assert [item["index"] for item in data] == list(range(len(data)))
    return np.array([item["embedding"] for item in data])


def until_cached(client: Client, given: Any) -> httpx.Response:
    found = until(
        lambda: (
            response
            if (response := ask(client, given)).headers["x-strata-cache"] == "exact"
            else None
        )
    )
    assert isinstance(found, httpx.Response)
    return found


def test_vectors_are_e5s_when_texts_are_given(client: Client) -> None:
    """Unit vectors of 384 numbers, near for near meanings; the shape is OpenAI's."""
    response = ask(client, ["Paris is the capital of France.", *TEXTS])
    body = response.json()
    rows = vectors(response)
    assert rows.shape == (4, 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
    assert rows[0] @ rows[1] > 0.9 > rows[0] @ rows[2]
    assert (body["object"], body["model"]) == ("list", MODEL)
    assert {item["object"] for item in body["data"]} == {"embedding"}
    assert body["usage"]["prompt_tokens"] == body["usage"]["total_tokens"] > 20


def test_base64_holds_the_same_vectors_when_it_is_asked_for(client: Client) -> None:
    """Base64 is little-endian float32, and served from the entry that numbers made."""
    rows = vectors(ask(client, TEXTS))
    until_cached(client, TEXTS)
    coded = ask(client, TEXTS, encoding_format="base64")
    assert coded.headers["x-strata-cache"] == "exact"
    decoded = [
        np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in coded.json()["data"]
    ]
    assert np.array_equal(np.array(decoded), rows.astype("<f4"))


def test_order_is_kept_when_some_inputs_are_cached(client: Client) -> None:
    """A list of old, new and repeated inputs comes back in its own order, usage and all."""
    old = [f"old text number {n}" for n in range(5)]
    first = ask(client, old)
    until_cached(client, old)
    mixed = ["new a", old[3], "new b", old[0], old[3], "new a"]
    answer = ask(client, mixed)
    assert answer.headers["x-strata-cache"] == "miss"
    rows = vectors(answer)
    alone = {text: vectors(ask(client, text, {"cache-control": "no-cache"}))[0] for text in mixed}
    for row, text in zip(rows, mixed, strict=True):
        assert np.allclose(row, alone[text], atol=1e-4)
    assert np.array_equal(rows[1], vectors(first)[3])
    again = until_cached(client, mixed)
    assert np.array_equal(vectors(again), rows)
    assert again.json()["usage"] == answer.json()["usage"]
    assert int(again.headers["age"]) >= 0


def test_caches_obey_when_headers_say_so(client: Client) -> None:
    """no-store keeps nothing, both directives bypass, only-if-cached never calls the model."""
    given = "a text that is never kept"
    assert ask(client, given, {"cache-control": "only-if-cached"}).status_code == 504
    for _ in range(2):
        kept = ask(client, given, {"cache-control": "no-store"})
        assert kept.headers["x-strata-cache"] == "miss"
    both = ask(client, given, {"cache-control": "no-cache, no-store"})
    assert both.headers["x-strata-cache"] == "bypass"
    ask(client, given)
    until_cached(client, given)
    hit = ask(client, given, {"cache-control": "only-if-cached"})
    assert (hit.status_code, hit.headers["x-strata-cache"]) == (200, "exact")
    other = ask(client, given, {"x-strata-namespace": "elsewhere"})
    assert other.headers["x-strata-cache"] == "miss"
    tagged = ask(client, "tagged text", {"x-strata-tags": "e5-doc"})
    assert tagged.headers["x-strata-cache"] == "miss"
    until_cached(client, "tagged text")
    client.http.delete("/admin/cache/entries", params={"tag": "e5-doc"}).raise_for_status()
    assert ask(client, "tagged text").headers["x-strata-cache"] == "miss"


LONG = "pebble " * 2000
HUGE = "x" * 200_000


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": ["a", 5]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": None}, "input"),
        ({"input": 7}, "input"),
        ({"input": [True]}, "input[0]"),
        ({"input": ["fine", LONG]}, "input[1]"),
        ({"input": LONG}, "input"),
        ({"input": HUGE}, "input"),
        ({"input": [HUGE]}, "input[0]"),
        ({"input": [1, 2, 3]}, "input"),
        ({"input": [[1, 2], [3]]}, "input[0]"),
        ({"input": [[1], []]}, "input[1]"),
        ({"input": [-1]}, "input[0]"),
        ({"dimensions": 64}, "dimensions"),
        ({"dimensions": 0}, "dimensions"),
        ({"encoding_format": "int8"}, "encoding_format"),
        ({"model": CHAT_MODEL}, "model"),
        ({"model": ""}, "model"),
        ({"user": 5}, "user"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_request_is_refused_by_name_when_a_field_is_wrong(
    client: Client, fields: dict[str, Any], param: str
) -> None:
    """One 400 that names the field, and the input by its place."""
    body = {"model": MODEL, "input": "fine", **fields}
    response = client.http.post("/v1/embeddings", json=body)
    error = response.json()["error"]
    assert response.status_code == 400, error
    assert error["param"] == param, error
    assert error["type"] == "invalid_request_error"


def test_errors_say_what_is_wrong_when_the_model_is_not_the_right_one(client: Client) -> None:
    """An unknown model is 404; the embedding model asked to chat says what it is."""
    unknown = client.http.post("/v1/embeddings", json={"model": "none", "input": "a"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    chat = client.chat("Hi", model=MODEL)
    assert chat.status_code == 400
    assert "embeddings" in chat.json()["error"]["message"]
    assert MODEL in {model["id"] for model in client.http.get("/v1/models").json()["data"]}


def test_sdk_gets_floats_when_it_asks_as_it_does(client: Client) -> None:
    """The openai SDK, which asks for base64 by itself, decodes what we send."""
    sdk = openai.OpenAI(base_url=f"{client.url}/v1", api_key="any", max_retries=0)
    answer = sdk.embeddings.create(model=MODEL, input=TEXTS, dimensions=384)
    assert [len(item.embedding) for item in answer.data] == [384] * 3
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.embeddings.create(model=MODEL, input=["a", ""])
    assert refused.value.param == "input[1]"


def test_vectors_are_made_when_semantic_hits_are_switched_off(start_stack: StartStack) -> None:
    """The model is loaded at the first request that asks for it."""
    bare = start_stack(LOCAL__MODEL="none", SEMANTIC__ENABLED="off")
    caller = Client(bare.url)
    assert vectors(ask(caller, TEXTS)).shape == (3, 384)
    until_cached(caller, TEXTS)
    caller.close()
