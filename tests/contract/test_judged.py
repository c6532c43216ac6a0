"""A model that is served here as the verifier: it decides, fails to a miss, must be there."""

import math
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.client import CHAT_MODEL, Client
from tests.contract.conftest import Relay, StartStack
from tests.contract.stack import Stack, command, environment, relaying
from tests.fakes.upstream import DONE, Answer, Call, chunk, echo, refusal, usage_chunk

QUESTION = "How do I get a refund for my ticket?"
ASKED = "What must I do to get my ticket refunded?"
TRAP = "What must I do to get my ticket changed?"
LEAST_INSTRUCTIONS = 64  # tokens
JUDGED = {"SEMANTIC__VERIFIER": "judge:judge-1", "LOCAL__MODEL": "none"}


class Judge:
    """Says yes to whatever speaks of a refund; echoes other models' requests."""

    def __init__(self) -> None:
        self.is_down = False
        self.questions: list[dict[str, object]] = []

    def __call__(self, call: Call) -> Answer:
        if call.body.get("model") != "judge-1":
            return echo(call)
        self.questions.append(call.body)
        if self.is_down:
            return refusal(503, {"error": {"message": "down"}})
        yes = 0.97 if "refunded" in call.body["messages"][1]["content"] else 0.02
        options = [
            {"token": word, "logprob": math.log(share), "bytes": None}
            for word, share in (("Yes", yes), ("No", 1 - yes))
        ]
        said = {"content": [{**max(options, key=_likely), "top_logprobs": options}]}
        first = chunk({"role": "assistant", "content": "Yes"}, logprobs=said)
        return Answer([first, chunk({}, finish="length"), usage_chunk(), DONE])


def _likely(option: dict[str, object]) -> float:
    return float(str(option["logprob"]))


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


@pytest.fixture(scope="module")
def judged(
    tmp_path_factory: pytest.TempPathFactory, serving_models: Path, judge: Judge
) -> Iterator[Stack]:
    folder, models = tmp_path_factory.mktemp("judged"), ("stub-model", "judge-1")
    with relaying(folder, serving_models, judge, models, **JUDGED) as started:
        yield started


@pytest.fixture
def relay(judged: Stack, judge: Judge) -> Iterator[Relay]:
    judge.is_down = False
    judge.questions.clear()
    caller = Relay(judged.url, {"x-strata-namespace": uuid.uuid4().hex})
    yield caller
    caller.close()


def test_judge_decides_when_rules_leave_it_open(relay: Relay, judge: Judge) -> None:
    """Its probability is the score; it is asked for one token behind the same instructions."""
    relay.seed(QUESTION)
    hit = relay.answer(ASKED)
    assert hit.headers["x-strata-cache"] == "semantic"
    assert float(hit.headers["x-strata-score"]) == pytest.approx(0.97, abs=1e-3)
    assert relay.answer(TRAP).headers["x-strata-cache"] == "miss"
    assert {str(asked["messages"][0]) for asked in judge.questions} == {  # type: ignore[index]
        str(judge.questions[0]["messages"][0])  # type: ignore[index]
    }
    assert {asked["max_tokens"] for asked in judge.questions} == {1}


def test_dry_run_asks_no_judge_when_a_request_would(relay: Relay, judge: Judge) -> None:
    """What only the judge could tell stays open; the candidate says why."""
    relay.seed(QUESTION)
    found = relay.lookup(relay.body(ASKED))
    assert found["outcome"] == "miss"
    assert "a dry run asks no model" in str(found["candidates"])
    assert judge.questions == []
    assert relay.answer(ASKED).headers["x-strata-cache"] == "semantic"


def test_lookup_is_a_miss_when_the_judge_is_down(relay: Relay, judge: Judge) -> None:
    """Never an error: the request goes to its model, exact repeats are served."""
    relay.seed(QUESTION)
    judge.is_down = True
    missed = relay.answer(ASKED)
    assert missed.headers["x-strata-cache"] == "miss"
    assert relay.answer(QUESTION).headers["x-strata-cache"] == "exact"
    assert 'strata_store_failures_total{store="verifier"}' in relay.metrics()


def test_local_model_judges_behind_a_pinned_prefix(
    start_stack: StartStack, clients: Callable[..., Client]
) -> None:
    """Its instructions are computed once, at the start; each question computes its own tokens."""
    stack = start_stack(SEMANTIC__VERIFIER=f"judge:{CHAT_MODEL}", SEMANTIC__VERIFIER_TIMEOUT_S="60")
    client = clients(stack)
    row = {"request": client.body(QUESTION), "text": "Write to us."}
    client.http.post("/admin/cache/entries", json=[row]).raise_for_status()
    before = reused(client)
    client.answer(ASKED)
    assert reused(client) - before >= LEAST_INSTRUCTIONS


def reused(client: Client) -> float:
    """Return the prompt tokens that were taken from the prefix cache so far."""
    metrics = client.metrics()
    found = re.search(
        r'^strata_prefix_tokens_total\{source="device"\} (\S+)$', metrics, re.MULTILINE
    )
    return float(found[1]) if found else 0.0


def test_start_is_refused_when_the_judge_is_no_model_served_here(
    tmp_path: Path, serving_models: Path
) -> None:
    """One line that names the setting, the model, and those that are served."""
    named = {"SEMANTIC__VERIFIER": "judge:nobody", "LOCAL__MODEL": "none"}
    settings = {f"STRATA_{name}": value for name, value in named.items()} | {
        "STRATA_DATA_DIR": str(tmp_path / "data"),
        "STRATA_MODELS_DIR": str(serving_models),
        "STRATA_PORT": "0",
    }
    ended = subprocess.run(
        command("serve"),
        cwd=tmp_path,
        env=environment(settings),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode != 0
    said = ended.stderr.decode() + ended.stdout.decode()
    assert "semantic.verifier" in said
    assert "nobody" in said
    assert "multilingual-e5-small" in said
    assert "Traceback" not in said
