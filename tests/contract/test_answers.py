"""The first minutes of a newcomer: an answer, an exact hit, a semantic hit, a prefix hit."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from transformers import AutoTokenizer

from tests.contract.client import CHAT_MODEL, Client
from tests.contract.conftest import Headers
from tests.contract.stack import Stack

QUESTION = "What is the capital of France?"
PARIS = "The capital of France is Paris."
BLOCK_SIZE = 16


def message(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.fixture
def sdk(stack: Stack, space: Headers) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{stack.url}/v1", api_key="any", default_headers=space, max_retries=0
    ) as client:
        yield client


def test_model_answers_when_nothing_is_cached(client: Client) -> None:
    """A greedy question gets a sensible answer, in OpenAI's shape."""
    response = client.answer(QUESTION)
    body = response.json()
    assert response.headers["x-strata-cache"] == "miss"
    message_given = body["choices"][0]["message"]
    assert (message_given["role"], message_given["content"]) == ("assistant", PARIS)
    assert body["object"] == "chat.completion"
    assert body["model"] == CHAT_MODEL
    assert [choice["finish_reason"] for choice in body["choices"]] == ["stop"]
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens_details"]["cached_tokens"] >= 0
    assert response.headers["x-request-id"]


def test_answer_is_exact_when_the_request_is_repeated(client: Client) -> None:
    """The second time it is the same answer, new id, from the exact layer."""
    first = client.seed(QUESTION).json()
    response = client.answer(QUESTION)
    second = response.json()
    assert response.headers["x-strata-cache"] == "exact"
    assert float(response.headers["age"]) >= 0
    assert response.headers["x-strata-entry"]
    assert second["choices"] == first["choices"]
    assert second["usage"] == first["usage"]
    assert second["id"] != first["id"]


def test_answer_is_semantic_when_the_question_is_reworded(client: Client) -> None:
    """The model's answer serves another wording of its question, and no opposite one."""
    first = client.seed(QUESTION).json()
    reworded = client.answer("What is France's capital city?")
    assert reworded.headers["x-strata-cache"] == "semantic"
    assert reworded.json()["choices"] == first["choices"]
    assert client.answer("What is not the capital of France?").headers["x-strata-cache"] == "miss"


def system_prompt(subject: str) -> str:
    return " ".join(
        f"Rule {k}: when somebody asks about {subject}, keep the reply short and polite."
        for k in range(1, 31)
    )


def test_prefix_is_reused_when_the_system_prompt_is_the_same(
    client: Client, bundled_chat_model: Path
) -> None:
    """A new question under a known long system prompt computes only what is new."""
    system = {"role": "system", "content": system_prompt("gardens")}
    first = [system, *message("Name one metal.")]
    second = [system, *message("How do I boil an egg?")]
    client.answer(first, max_tokens=4)
    response = client.answer(second, max_tokens=4)
    tokenizer = AutoTokenizer.from_pretrained(bundled_chat_model)
    one, two = (
        tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        for messages in (first, second)
    )
    shared = next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    usage = response.json()["usage"]
    assert response.headers["x-strata-cache"] == "miss"
    assert usage["prompt_tokens"] == len(two)
    assert shared // BLOCK_SIZE * BLOCK_SIZE <= usage["prompt_tokens_details"]["cached_tokens"]
    assert usage["prompt_tokens_details"]["cached_tokens"] <= shared


def test_next_turn_reuses_the_conversation_when_it_goes_on(client: Client) -> None:
    """Prompt and answer of one turn are the cached prefix of the next."""
    turns: list[dict[str, str]] = [{"role": "system", "content": system_prompt("boats")}]
    turns += message("Name one river.")
    first = client.answer(turns).json()
    turns += [first["choices"][0]["message"] | {"role": "assistant"}, *message("And another?")]
    usage = client.answer(turns).json()["usage"]
    before = first["usage"]["prompt_tokens"] // BLOCK_SIZE * BLOCK_SIZE
    assert usage["prompt_tokens_details"]["cached_tokens"] >= before - BLOCK_SIZE


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_gets_an_answer(stack: Stack) -> None:
    """The plainest client there is."""
    body = {"model": CHAT_MODEL, "messages": message(QUESTION), "temperature": 0}
    words = ["curl", "-sS", "--fail-with-body", f"{stack.url}/v1/chat/completions"]
    words += ["-H", "content-type: application/json", "-d", json.dumps(body)]
    done = subprocess.run(words, capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout)["choices"][0]["message"]["content"] == PARIS


def test_openai_sdk_gets_the_same_answer_when_it_streams(sdk: openai.OpenAI) -> None:
    """The SDK reads a whole answer and a stream, from the model and from the cache."""
    ask = {"model": CHAT_MODEL, "messages": message(QUESTION), "temperature": 0}
    for _ in range(2):
        whole = sdk.chat.completions.create(**ask)  # type: ignore[call-overload]
        assert whole.choices[0].message.content == PARIS
        with sdk.chat.completions.create(
            **ask, stream=True, stream_options={"include_usage": True}
        ) as stream:  # type: ignore[call-overload]
            chunks = list(stream)
        assert (
            "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
            == PARIS
        )
        assert chunks[-1].usage == whole.usage


async def test_async_openai_sdk_gets_all_answers_when_asked_at_once(stack: Stack) -> None:
    """Many questions at once, each with the answer it gets alone; streams are asynchronous too."""
    questions = [
        f"What is the capital of {land}?" for land in ("France", "Italy", "Japan", "Spain")
    ]
    async with openai.AsyncOpenAI(base_url=f"{stack.url}/v1", api_key="any", max_retries=0) as sdk:

        async def streamed(question: str) -> str:
            stream = await sdk.chat.completions.create(
                model=CHAT_MODEL,
                messages=[{"role": "user", "content": question}],
                temperature=0,
                max_tokens=24,
                stream=True,
                extra_headers={"cache-control": "no-cache, no-store"},
            )
            async with stream:
                return "".join(
                    [c.delta.content or "" async for chunk in stream for c in chunk.choices]
                )

        alone = [await streamed(question) for question in questions]
        assert await asyncio.gather(*map(streamed, questions)) == alone
    assert alone[0] == PARIS
    assert "Tokyo" in alone[2]


def test_sdk_raises_its_own_error_when_the_model_is_unknown(sdk: openai.OpenAI) -> None:
    """Errors are in the envelope that the SDK understands."""
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.chat.completions.create(model="no-such-model", messages=message(QUESTION))  # type: ignore[arg-type]
    assert caught.value.code == "model_not_found"


def test_models_are_listed_when_asked_for(sdk: openai.OpenAI) -> None:
    """Local models are listed and found by their id."""
    assert CHAT_MODEL in {model.id for model in sdk.models.list()}
    assert sdk.models.retrieve(CHAT_MODEL).id == CHAT_MODEL
    with pytest.raises(openai.NotFoundError):
        sdk.models.retrieve("no-such-model")
