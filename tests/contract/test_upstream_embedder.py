"""A gateway whose semantic layer embeds through an upstream."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.client import Client, until
from tests.contract.stack import Stack, serving
from tests.fakes.upstream import Answer, Call, FakeUpstream, echo, refusal, vectors

DOWN = refusal(503, {"error": {"message": "down", "type": "x", "param": None, "code": None}})
QUESTION = "What is the capital of France?"
SAME = "what is the capital of france"


def toml(url: str) -> str:
    return f"""
[embedder]
model = "upstream:vectors/embed-1"

[[upstreams]]
name = "vectors"
base_url = "{url}"
models = ["stub-model"]
retries = 0
"""


class Engine:
    """Embeds words as letters; away while ``is_down``."""

    def __init__(self) -> None:
        self.is_down = False

    def __call__(self, call: Call) -> Answer:
        if not call.path.endswith("/embeddings"):
            return echo(call)
        return DOWN if self.is_down else vectors([self._row(text) for text in call.body["input"]])

    def _row(self, text: str) -> list[float]:
        letters = [ord(letter) - 97 for letter in text.lower() if "a" <= letter <= "z"]
        return [float(n) for n in np.bincount(letters, minlength=26) + 0.01]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, serving_models: Path, engine: Engine
) -> Iterator[Stack]:
    with ExitStack() as running:
        fake = running.enter_context(FakeUpstream(engine))
        folder = tmp_path_factory.mktemp("embedder")
        settings = toml(fake.base_url)
        yield running.enter_context(
            serving(folder, serving_models, toml=settings, LOCAL__MODEL="none")
        )


class Caller(Client):
    def body(self, prompt: Any, **fields: Any) -> dict[str, Any]:
        return super().body(prompt, **{"model": "stub-model", **fields})


@pytest.fixture
def caller(stack: Stack, engine: Engine) -> Iterator[Client]:
    engine.is_down = False
    client = Caller(stack.url, {"x-strata-namespace": uuid.uuid4().hex})
    yield client
    client.close()


def test_same_question_hits_by_likeness_when_an_upstream_embeds(caller: Client) -> None:
    """Found through its vectors; with cosines nobody has calibrated, only the same words hit."""
    caller.seed(QUESTION)
    hit = caller.answer(SAME)
    assert hit.headers["x-strata-cache"] == "semantic"
    assert caller.answer("What is the capital of Spain?").headers["x-strata-cache"] == "miss"


def test_lookup_is_a_miss_when_the_embedder_is_away(caller: Client, engine: Engine) -> None:
    """Never an error; exact hits go on, the breaker opens and closes again."""
    caller.seed(QUESTION)
    engine.is_down = True
    for at in range(8):
        assert caller.answer(f"Question {at}, please?").headers["x-strata-cache"] == "miss"
    assert caller.answer(QUESTION).headers["x-strata-cache"] == "exact"
    assert 'strata_breaker_open{part="embedder"} 1.0' in caller.metrics()
    assert caller.http.get("/health/ready").status_code == 200
    engine.is_down = False
    until(lambda: caller.lookup(caller.body(SAME))["outcome"] == "semantic", what="healed")
