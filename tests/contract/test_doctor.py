"""Real faults on real gateways, and what the doctor says of them."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.contract.client import Client, until
from tests.contract.conftest import Relay, StartStack
from tests.contract.pair import redis_server
from tests.contract.stack import Stack, command, environment, serving, upstream_toml
from tests.fakes.upstream import FakeUpstream, echo, refusal

HANDBOOK = "You answer questions about our shop. We sell tea, cups and kettles. " * 4
ASKED = "What is the capital of France?"
REWORDED = "Which city is the capital of France?"


def findings(client: Client) -> list[dict[str, str]]:
    response = client.http.get("/admin/doctor")
    assert response.status_code == 200, response.text
    return list(response.json()["findings"])


def found(client: Client, check: str, words: str) -> dict[str, str]:
    """Return the finding of a check whose title has these words."""
    told = findings(client)
    fitting = [one for one in told if one["check"] == check and words in one["title"]]
    assert fitting, [one for one in told if one["severity"] != "ok"]
    return fitting[0]


def examined(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``strata doctor`` as an operator does."""
    return subprocess.run(
        command("doctor", stack.url, *arguments),
        env=environment({}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Stack]:
    """A local model with a pool below its context, under a gateway that learns nothing."""
    with serving(
        tmp_path_factory.mktemp("narrow"),
        serving_models,
        LOCAL__KV_TOKENS="1024",
        SEMANTIC__GRAY_SHARE="0",
    ) as stack:
        yield stack


@pytest.fixture(scope="module")
def watched(narrow: Stack) -> Client:
    """A caller whose prompts all begin with another time."""
    for at in range(12):
        narrow.client.answer(
            [
                {"role": "system", "content": f"Now it is 2026-11-30 06:{at:02}:17.\n{HANDBOOK}"},
                {"role": "user", "content": f"Do you sell item {at}?"},
            ],
            max_tokens=1,
        )
    return narrow.client


def test_gateway_is_well_when_it_has_just_started(stack: Stack) -> None:
    """Every check says what it looked at; none raises an alarm at a gateway as it comes."""
    told = findings(stack.client)
    assert not [one for one in told if one["severity"] == "error"]
    assert all(one["evidence"] for one in told)
    done = examined(stack, "--json")
    assert done.returncode == 0, done.stdout
    checks = {one["check"] for one in json.loads(done.stdout)["findings"]}
    assert checks == {one["check"] for one in told}


def test_time_at_the_top_of_prompts_is_named_with_its_cost(watched: Client) -> None:
    """The place, the share of tokens it costs, and where it should stand."""
    told = found(watched, "prompts", "Timestamp in messages[0].content")
    assert told["severity"] == "warning"
    assert "of all prompt tokens" in told["evidence"]
    assert "end of the prompt" in told["mend"]


def test_pool_below_the_context_is_named_with_its_key(watched: Client) -> None:
    """With the value that is enough."""
    told = found(watched, "memory", "smaller than the model's context")
    assert told["severity"] == "warning"
    assert "local.kv_tokens to 16384" in told["mend"]


def test_settings_under_which_nothing_is_learnt_are_named(watched: Client) -> None:
    """Neither near-misses nor hits are compared here."""
    told = found(watched, "settings", "Nothing is learnt")
    assert "semantic.gray_share to 1" in told["mend"]


def test_model_that_died_is_told_after_it_is_back(narrow: Stack, watched: Client) -> None:
    """Killed as the system kills what needs too much memory; the command exits with 1 if strict."""
    narrow.child("prefix_layer").kill()
    until(lambda: watched.http.get("/health/ready").json()["engine"]["state"] != "ready")
    until(lambda: watched.http.get("/health/ready").json()["engine"]["state"] == "ready")
    told = found(watched, "backends", "process died")
    assert "restarted 1 time" in told["evidence"]
    assert examined(narrow).returncode == 0
    assert examined(narrow, "--strict").returncode == 1


def test_unproven_hits_failing_upstream_and_lost_store_are_told(
    tmp_path: Path, start_stack: StartStack
) -> None:
    """One after the other on one gateway; with the store gone the command exits with 2."""
    with ExitStack() as servers:
        upstream = servers.enter_context(FakeUpstream(echo))
        away = servers.enter_context(ExitStack())
        url = away.enter_context(redis_server(tmp_path))
        toml = upstream_toml(upstream.base_url, more="retries = 0")
        stack = start_stack(toml=toml, LOCAL__MODEL="none", REDIS__URL=url)
        client = servers.enter_context(closing(Relay(stack.url)))
        client.seed(ASKED)
        until(lambda: client.lookup(client.body(REWORDED))["outcome"] == "semantic")
        for _ in range(20):
            assert client.answer(REWORDED).headers["x-strata-cache"] == "semantic"
        told = found(client, "thresholds", "Nothing proves that hits of factual")
        assert "20 semantic hits" in told["evidence"]
        assert "semantic.shadow_share to 0.05" in told["mend"]

        upstream.script = lambda _: refusal(429, {"error": {"message": "slow down"}})
        for at in range(20):
            assert client.chat(f"Question number {at}?").status_code == 429
        assert "429 20 times" in found(client, "backends", "fails often")["evidence"]

        away.close()
        told = found(client, "stores", "does not answer")
        assert told["severity"] == "error"
        assert "redis.url" in told["mend"]
        assert examined(stack).returncode == 2
