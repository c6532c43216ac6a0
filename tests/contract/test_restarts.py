"""Stops, restarts and kills: answers survive, nothing wrong is served, nothing is left behind.

The tests share one gateway and leave it running, so that each start pays for several checks.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.contract.client import CHAT_MODEL, Client, until
from tests.contract.stack import Stack, serving

QUESTION = "What is the capital of France?"
REWORDED = "What is France's capital city?"
PARIS = "The capital of France is Paris."
LONG = {"max_tokens": 400, "headers": {"cache-control": "no-cache, no-store"}}
ENGINE = "prefix_layer"
STORE = "valkey"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Stack]:
    with serving(tmp_path_factory.mktemp("fragile"), serving_models) as started:
        yield started


@pytest.fixture
def client(stack: Stack) -> Client:
    """A caller in the default cache space, with the question's answer stored."""
    caller = stack.client
    if caller.lookup(caller.body(QUESTION))["outcome"] != "exact":
        caller.seed(QUESTION)
    return caller


def text_of(response: httpx.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def assert_hits(client: Client) -> None:
    """Both layers serve the stored answer."""
    for prompt, outcome in ((QUESTION, "exact"), (REWORDED, "semantic")):
        response = client.answer(prompt)
        assert response.headers["x-strata-cache"] == outcome
        assert text_of(response) == PARIS


def engine_is_ready(client: Client) -> bool:
    health = client.http.get("/health/ready").json()
    return bool(health["engine"]["state"] == "ready")


def test_hits_survive_when_the_gateway_is_restarted(stack: Stack, client: Client) -> None:
    """Ctrl-C and a new start: exact and semantic hits are there, and the model still answers."""
    stack.restart()
    assert_hits(client)
    assert client.answer("Name one metal.", max_tokens=4).headers["x-strata-cache"] == "miss"


def test_hits_survive_when_the_gateway_is_killed(stack: Stack, client: Client) -> None:
    """``kill -9``: the children die with it, and a new start serves what was stored."""
    assert len(stack.children()) >= 2
    stack.kill()
    stack.start()
    assert_hits(client)


def test_everything_stops_in_time_when_ctrl_c_meets_a_running_answer(
    stack: Stack, client: Client
) -> None:
    """An answer in flight does not hold the stop up, nor is its part stored."""
    with client.opened("Write a very long story about the sea.", max_tokens=2000) as response:
        lines = response.iter_lines()
        next(lines)
        stack.interrupt()
        rest: list[str] = []
        with suppress(httpx.TransportError):
            rest.extend(lines)
    assert not any('"finish_reason":"' in line for line in rest)
    stack.start()
    story = client.body("Write a very long story about the sea.", max_tokens=2000)
    assert client.lookup(story)["outcome"] == "miss"


def test_no_answer_is_wrong_when_the_store_is_killed(stack: Stack, client: Client) -> None:
    """Without Valkey requests are misses at worst, never errors; it comes back by itself."""
    killed = stack.child(STORE)
    killed.kill()
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        response = client.answer(QUESTION)
        assert text_of(response) == PARIS
        assert response.headers["x-strata-cache"] in {"exact", "semantic", "miss"}
    until(lambda: client.answer(QUESTION).headers["x-strata-cache"] == "exact", what="healed")
    assert_hits(client)
    assert stack.child(STORE).pid != killed.pid


def test_hits_go_on_when_the_engine_is_killed(stack: Stack, client: Client) -> None:
    """Hits never stop, what was in flight fails clearly, and the engine comes back by itself."""
    killed = engine_of(stack)
    with client.opened("Write a long story about a river.", **LONG) as response:
        lines = response.iter_lines()
        next(lines)
        killed.kill()
        rest = [line for line in lines if line]
    assert any('"error"' in line for line in rest), rest[-3:]
    assert not any('"finish_reason":"' in line.replace(" ", "") for line in rest)
    for _ in range(20):
        assert_hits(client)
    during = client.chat("Name one river.", max_tokens=4)
    assert during.status_code in {200, 503}
    until(lambda: engine_is_ready(client), limit_s=60, what="engine back")
    assert client.answer("Name one lake.", max_tokens=4).headers["x-strata-cache"] == "miss"
    assert engine_of(stack).pid != killed.pid


def engine_of(stack: Stack) -> psutil.Process:
    return stack.child(ENGINE)


def test_blocks_are_freed_when_clients_leave(client: Client) -> None:
    """Abandoned answers, streamed or not, hold no KV blocks."""

    def leave_a_stream(k: int) -> None:
        with client.opened(f"Write a long story about ship {k}.", **LONG) as response:
            next(response.iter_lines())

    def leave_a_whole(k: int) -> None:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{client.url}/v1/chat/completions",
                json=client.body(f"Write a long story about castle {k}.", max_tokens=400),
                headers={"cache-control": "no-store"},
                timeout=1.5,
                trust_env=False,
            )

    with ThreadPoolExecutor(6) as pool:
        jobs = [
            pool.submit(leave, k) for k in range(3) for leave in (leave_a_stream, leave_a_whole)
        ]
        for job in jobs:
            job.result()

    def idle() -> bool:
        stats = client.http.get("/admin/prefix/stats").json()
        return bool(stats["running"] == stats["waiting"] == stats["blocks"]["active"] == 0)

    until(idle, limit_s=10, what="all blocks freed")


def test_hits_go_on_when_the_engine_is_busy(client: Client) -> None:
    """Exact hits are served while answers are generated."""
    stop = threading.Event()

    def generate() -> None:
        while not stop.is_set():
            client.answer("Write a long story about a hill.", **{**LONG, "max_tokens": 40})

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(generate)
        for _ in range(50):
            assert client.answer(QUESTION).headers["x-strata-cache"] == "exact"
        stop.set()
        job.result()


def test_data_dir_is_refused_when_another_gateway_holds_it(
    stack: Stack, client: Client, tmp_path: Path, serving_models: Path
) -> None:
    """Two gateways on one folder would harm each other's stores: the second does not start."""
    second = Stack(tmp_path, serving_models, {"STRATA_DATA_DIR": str(stack.folder / "data")})
    with pytest.raises(AssertionError):
        second.start()
    second.close()
    assert "data" in second.log
    assert "Traceback" not in second.log
    assert_hits(client)
    assert CHAT_MODEL in client.http.get("/v1/models").text
