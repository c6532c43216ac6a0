"""Many at once on shared prefixes: each gets the answer it would get alone (field case E07)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.contract.client import Client
from tests.contract.stack import serving

BYPASS = {"cache-control": "no-cache, no-store"}
LETTERS = "BDFKMR"
MARGIN = 1e-2


def system(subject: str) -> dict[str, str]:
    words = f"You are a patient teacher of {subject}. Answer briefly, in plain words. " * 40
    return {"role": "system", "content": " ".join(words.split()[:600])}


def prompts(subject: str) -> list[list[dict[str, str]]]:
    return [
        [
            system(subject),
            {
                "role": "user",
                "content": f"Question {k}: name something that starts with letter {letter}",
            },
        ]
        for k, letter in enumerate(LETTERS, 1)
    ]


def ask(client: Client, messages: list[dict[str, str]]) -> dict[str, Any]:
    body: dict[str, Any] = client.answer(
        messages, headers=BYPASS, max_tokens=24, logprobs=True, top_logprobs=2
    ).json()
    usage = body["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] <= usage["prompt_tokens"] - 1
    return body


def all_at_once(client: Client, asked: list[list[dict[str, str]]]) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(lambda messages: ask(client, messages), asked))


def assert_same(got: dict[str, Any], alone: dict[str, Any]) -> None:
    """Equal token by token, up to a place where two tokens were as good as equal."""
    entries = zip(
        got["choices"][0]["logprobs"]["content"],
        alone["choices"][0]["logprobs"]["content"],
        strict=False,
    )
    for mine, other in entries:
        if mine["token"] != other["token"]:
            best, second = other["top_logprobs"][:2]
            assert best["logprob"] - second["logprob"] < MARGIN
            return
    assert got["choices"][0]["message"] == alone["choices"][0]["message"]


def cached(body: dict[str, Any]) -> int:
    return int(body["usage"]["prompt_tokens_details"]["cached_tokens"])


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Client]:
    """A caller of a gateway that never reuses a prefix."""
    settings = {"LOCAL__PREFIX_CACHING": "off", "SEMANTIC__ENABLED": "off"}
    with serving(tmp_path_factory.mktemp("cold"), serving_models, **settings) as stack:
        yield stack.client


@pytest.mark.slow
def test_answers_are_as_alone_when_all_are_asked_at_once(client: Client, cold: Client) -> None:
    """Six on one prefix, twice, against a cold run of each on its own."""
    asked = prompts("geography")
    alone = [ask(cold, messages) for messages in asked]
    assert {cached(body) for body in alone} == {0}
    for _ in range(2):
        for got, expected in zip(all_at_once(client, asked), alone, strict=True):
            assert_same(got, expected)


def test_copies_agree_when_the_prefix_is_new_to_all(client: Client) -> None:
    """Eight copies at once on a cold prefix: nobody reads a block before it is computed."""
    [messages, *_] = prompts("music")
    first, *others = all_at_once(client, [messages] * 8)
    for other in others:
        assert_same(other, first)
    assert_same(ask(client, messages), first)


@pytest.mark.slow
def test_answers_are_as_alone_when_warm_and_new_ones_mix(client: Client) -> None:
    """Three warm and three long new prompts at once."""
    warm = prompts("history")[:3]
    alone = [ask(client, messages) for messages in warm]
    new = [prompts(subject)[0] for subject in ("chess", "cooking", "botany")]
    got = all_at_once(client, [*warm, *new])
    for body, expected in zip(got[:3], alone, strict=True):
        assert_same(body, expected)
        assert cached(body) > 0
    for body, messages in zip(got[3:], new, strict=True):
        assert_same(body, ask(client, messages))
