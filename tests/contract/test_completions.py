"""``/v1/completions`` over the bundled model: shapes, echo, logprobs, choices, cache, refusals.

Kinds of the field cases P01, P03, P05, P09 and P11, here for the legacy API.
"""

import math
from typing import Any

import httpx
import openai
import pytest

from tests.contract.client import CHAT_MODEL, Client, parse_stream, strict_json, until

PROMPT = "The capital of France is"
UNICODE = "Copy this line exactly: 晚安🌙 café Ω 你好👩‍🚀\n"
BYPASS = {"cache-control": "no-cache, no-store"}


def body(prompt: Any = PROMPT, **fields: Any) -> dict[str, Any]:
    return {"model": CHAT_MODEL, "prompt": prompt, "temperature": 0, "max_tokens": 8, **fields}


def post(
    client: Client, prompt: Any = PROMPT, headers: dict[str, str] | None = None, **fields: Any
) -> httpx.Response:
    return client.http.post("/v1/completions", json=body(prompt, **fields), headers=headers or {})


def ask(client: Client, prompt: Any = PROMPT, **fields: Any) -> dict[str, Any]:
    response = post(client, prompt, **fields)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = strict_json(response.text)
    return found


def stream(client: Client, prompt: Any = PROMPT, **fields: Any) -> list[dict[str, Any]]:
    response = post(client, prompt, stream=True, **fields)
    read = parse_stream(response.status_code, response.headers, response.content)
    assert read.is_done
    return read.chunks


def joined(chunks: list[dict[str, Any]], index: int = 0) -> str:
    return "".join(
        choice["text"]
        for chunk in chunks
        for choice in chunk["choices"]
        if choice["index"] == index
    )


def until_hit(client: Client, prompt: Any = PROMPT, **fields: Any) -> None:
    until(lambda: post(client, prompt, **fields).headers["x-strata-cache"] == "exact")


def test_prompt_is_continued_when_it_is_plain_text(client: Client) -> None:
    """A raw prompt, no template: the shape is OpenAI's, sixteen tokens when nothing is said."""
    answer = ask(client, max_tokens=None)
    [choice] = answer["choices"]
    assert choice["text"].startswith(" Paris")
    assert (choice["index"], choice["logprobs"], choice["finish_reason"]) == (0, None, "length")
    assert answer["id"].startswith("cmpl-")
    assert (answer["object"], answer["model"]) == ("text_completion", CHAT_MODEL)
    usage = answer["usage"]
    assert usage["completion_tokens"] == 16
    assert usage["total_tokens"] == usage["prompt_tokens"] + 16


@pytest.mark.parametrize("headers", [BYPASS, {}], ids=["model", "cache"])
@pytest.mark.parametrize("prompt", [PROMPT, UNICODE, "请用中文说“你好”。答："])
@pytest.mark.parametrize("max_tokens", [1, 24])
def test_stream_equals_the_whole_character_for_character(
    client: Client, headers: dict[str, str], prompt: str, max_tokens: int
) -> None:
    """P01, P05: text whole and streamed is one; one finish, one id, no half characters."""
    answer = ask(client, prompt, headers=headers, max_tokens=max_tokens)
    if not headers:
        until_hit(client, prompt, max_tokens=max_tokens)
    chunks = stream(client, prompt, headers=headers, max_tokens=max_tokens)
    [choice] = answer["choices"]
    assert joined(chunks) == choice["text"]
    reasons = [piece["finish_reason"] for chunk in chunks for piece in chunk["choices"]]
    assert reasons == [None] * (len(reasons) - 1) + [choice["finish_reason"]]
    for key in ("id", "created", "model", "object"):
        assert len({chunk[key] for chunk in chunks}) == 1
    assert not any("usage" in chunk for chunk in chunks)
    if max_tokens == 1:
        assert choice["finish_reason"] == "length"


def test_usage_comes_once_and_last_when_a_stream_asks_for_it(client: Client) -> None:
    """P03: one usage event without choices, equal to the whole's, for a miss and a hit."""
    usages = [ask(client)["usage"]]
    until_hit(client)
    for headers in (BYPASS, {}):
        chunks = stream(client, headers=headers, stream_options={"include_usage": True})
        told = [chunk["usage"] for chunk in chunks if chunk["usage"] is not None]
        assert chunks[-1]["choices"] == []
        assert len(told) == 1
        usages.append(told[0])
    counts = [(u["prompt_tokens"], u["completion_tokens"], u["total_tokens"]) for u in usages]
    assert len(set(counts)) == 1


def test_repeat_is_an_exact_hit_and_nothing_else_is(client: Client) -> None:
    """The same request hits in any key order; another prompt, however like, misses."""
    first = ask(client)
    until_hit(client)
    again = post(client)
    assert again.headers["x-strata-cache"] == "exact"
    assert again.json()["choices"] == first["choices"]
    assert again.json()["id"] != first["id"]
    for other in ("The capital city of France is", [PROMPT, PROMPT], PROMPT + " "):
        assert post(client, other).headers["x-strata-cache"] == "miss"
    assert post(client, echo=True).headers["x-strata-cache"] == "miss"
    chat = client.chat(PROMPT, max_tokens=8)
    assert chat.headers["x-strata-cache"] == "miss"


def test_every_prompt_is_answered_in_its_place_when_several_are_given(client: Client) -> None:
    """Texts, and token ids of the same texts, n choices each, numbered prompt by prompt."""
    prompts = ["One, two, three,", PROMPT, "Red, green and"]
    alone = [ask(client, prompt)["choices"][0]["text"] for prompt in prompts]
    together = ask(client, prompts, n=2)
    assert [choice["index"] for choice in together["choices"]] == list(range(6))
    assert [choice["text"] for choice in together["choices"]] == [t for t in alone for _ in "12"]
    chunks = stream(client, prompts, headers=BYPASS)
    assert [joined(chunks, index) for index in range(3)] == alone
    usage = together["usage"]
    assert usage["completion_tokens"] == sum(
        2 * ask(client, prompt)["usage"]["completion_tokens"] for prompt in prompts
    )


def test_token_ids_give_what_their_text_gives(client: Client) -> None:
    """A list of ids is one prompt, a list of lists several; echo spells them."""
    echoed = ask(client, echo=True, logprobs=0, max_tokens=0)["choices"][0]
    assert "".join(echoed["logprobs"]["tokens"]) == echoed["text"] == PROMPT
    text = ask(client)["choices"][0]["text"]
    ids = [504, 3575, 282, 4649, 314]
    first = ask(client, ids)["choices"][0]
    both = ask(client, [ids, ids[:2]], echo=True)["choices"]
    assert both[0]["text"].endswith(first["text"])
    assert len(both) == 2
    spelled = both[0]["text"].removesuffix(first["text"])
    assert ask(client, spelled)["choices"][0]["text"] == first["text"]
    assert text


@pytest.mark.parametrize("prompt", [PROMPT, UNICODE])
def test_echo_gives_the_prompts_own_logprobs(client: Client, prompt: str) -> None:
    """P11: parallel lists, offsets into the text, finite numbers; first of the prompt null."""
    plain = ask(client, prompt, max_tokens=5, logprobs=3)["choices"][0]
    scored = ask(client, prompt, max_tokens=5, logprobs=3, echo=True)["choices"][0]
    logprobs = scored["logprobs"]
    assert scored["text"] == prompt + plain["text"]
    lengths = {len(values) for values in logprobs.values()}
    assert len(lengths) == 1
    assert logprobs["token_logprobs"][0] is None
    assert logprobs["top_logprobs"][0] is None
    for value, top in zip(
        logprobs["token_logprobs"][1:], logprobs["top_logprobs"][1:], strict=True
    ):
        assert value <= 0
        assert math.isfinite(value)
        assert 3 <= len(top) <= 4
        assert max(top.values()) >= value - 1e-6
    assert logprobs["text_offset"][0] == 0
    for at, token in enumerate(logprobs["tokens"]):
        if not token.startswith("bytes:") and "\ufffd" not in token:
            offset = logprobs["text_offset"][at]
            assert scored["text"][offset : offset + len(token)] == token
    generated = plain["logprobs"]["token_logprobs"]
    assert logprobs["token_logprobs"][-len(generated) :] == pytest.approx(generated, abs=1e-3)


def test_prompt_logprobs_are_what_generation_would_have_said(client: Client) -> None:
    """Scoring a text that the model wrote gives the numbers it had when it wrote it."""
    written = ask(client, max_tokens=6, logprobs=1)["choices"][0]
    text = PROMPT + written["text"]
    for _ in range(2):  # the second time the whole prefix is cached, and must not be skipped
        scored = ask(client, text, headers=BYPASS, max_tokens=0, logprobs=1, echo=True)
        again = scored["choices"][0]
        assert again["text"] == text
        assert again["finish_reason"] == "length"
        numbers = again["logprobs"]["token_logprobs"][-6:]
        assert numbers == pytest.approx(written["logprobs"]["token_logprobs"], abs=2e-3)
        assert scored["usage"]["completion_tokens"] == 0


def test_logprobs_come_the_same_when_streamed_and_from_the_cache(client: Client) -> None:
    """Whole or streamed, new or cached, echo or not: the same lists."""
    for echo in (False, True):
        fields = {"logprobs": 2, "echo": echo, "max_tokens": 6}
        want = ask(client, **fields)["choices"][0]
        until_hit(client, **fields)
        for headers in (BYPASS, {}):
            chunks = stream(client, headers=headers, **fields)
            lists: dict[str, list[Any]] = {name: [] for name in want["logprobs"]}
            for chunk in chunks:
                for name, values in (chunk["choices"][0]["logprobs"] or {}).items():
                    lists[name] += values
            assert lists["tokens"] == want["logprobs"]["tokens"]
            assert lists["text_offset"] == want["logprobs"]["text_offset"]
            got = [value for value in lists["token_logprobs"] if value is not None]
            expected = [value for value in want["logprobs"]["token_logprobs"] if value is not None]
            assert got == pytest.approx(expected, abs=1e-3)


def test_likeliest_choice_is_given_when_the_best_of_several_is_asked_for(client: Client) -> None:
    """best_of draws more than it gives, counts all of them, and never the worst."""
    fields = {"temperature": 0.9, "seed": 3, "max_tokens": 6, "logprobs": 1}
    drawn = ask(client, n=4, **fields)["choices"]

    def mean(choice: dict[str, Any]) -> float:
        values = choice["logprobs"]["token_logprobs"]
        return sum(values) / len(values)

    ranked = sorted(drawn, key=lambda choice: -mean(choice))
    best = ask(client, n=2, best_of=4, **fields)
    assert [c["text"] for c in best["choices"]] == [c["text"] for c in ranked[:2]]
    assert [c["index"] for c in best["choices"]] == [0, 1]
    tokens = sum(len(choice["logprobs"]["tokens"]) for choice in drawn)
    assert best["usage"]["completion_tokens"] == tokens


def test_stop_string_ends_the_text_before_it(client: Client) -> None:
    """The stop string is not given, whole or streamed, nor looked for in an echoed prompt."""
    full = ask(client, "Count: one, two, three,", max_tokens=16)["choices"][0]["text"]
    stop = full[6:9]
    cut = ask(client, "Count: one, two, three,", max_tokens=16, stop=stop, echo=True)["choices"][0]
    assert cut["text"] == "Count: one, two, three," + full[: full.index(stop)]
    assert cut["finish_reason"] == "stop"


LONG = "pebble " * 12000


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"prompt": LONG}, "prompt", "context_length_exceeded"),
        ({"prompt": ["ok", LONG]}, "prompt[1]", "context_length_exceeded"),
        ({"prompt": LONG, "stream": True}, "prompt", "context_length_exceeded"),
        ({"prompt": ""}, "prompt", None),
        ({"prompt": []}, "prompt", None),
        ({"prompt": None}, "prompt", None),
        ({"prompt": ["a", 1]}, "prompt", None),
        ({"prompt": [[1], []]}, "prompt[1]", None),
        ({"prompt": [10**6]}, "prompt", None),
        ({"prompt": [-1]}, "prompt[0]", None),
        ({"suffix": "end"}, "suffix", "unsupported"),
        ({"best_of": 1, "n": 2}, "best_of", None),
        ({"best_of": 2, "stream": True}, "best_of", None),
        ({"best_of": 21}, "best_of", None),
        ({"logprobs": 6}, "logprobs", None),
        ({"logprobs": True}, "logprobs", None),
        ({"max_tokens": -1}, "max_tokens", None),
        ({"n": 0}, "n", None),
        ({"temperature": 2.5}, "temperature", None),
        ({"logit_bias": {"x": 1}}, "logit_bias", None),
        ({"stream_options": {"include_usage": True}}, "stream_options", None),
        ({"prompt": ["a"] * 300}, "prompt", None),
        ({"model": "multilingual-e5-small"}, "model", None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_request_is_refused_by_name_when_a_field_is_wrong(
    client: Client, fields: dict[str, Any], param: str, code: str | None
) -> None:
    """P09: one JSON 400 that names the field, streamed or not, and the next request works."""
    response = client.http.post("/v1/completions", json=body(**fields))
    assert response.status_code == 400, response.text
    assert response.headers["content-type"].startswith("application/json")
    error = response.json()["error"]
    assert error["param"].startswith(param)
    assert error["type"] == "invalid_request_error"
    if code is not None:
        assert error["code"] == code
    assert ask(client)["choices"]


def test_sdk_reads_what_we_send(client: Client) -> None:
    """The openai SDK, whole, streamed, and for an unknown model."""
    sdk = openai.OpenAI(base_url=f"{client.url}/v1", api_key="any", max_retries=0)
    whole = sdk.completions.create(**body(logprobs=2))
    streamed = list(sdk.completions.create(**body(), stream=True))
    assert whole.choices[0].text == "".join(piece.choices[0].text for piece in streamed)
    assert whole.choices[0].logprobs is not None
    with pytest.raises(openai.NotFoundError):
        sdk.completions.create(**{**body(), "model": "no-such-model"})
