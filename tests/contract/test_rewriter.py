"""``semantic.rewriter``: a model puts last messages of chats so that they stand alone."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.client import CHAT_MODEL, Client, until
from tests.contract.conftest import Relay, StartStack
from tests.contract.stack import Stack, relaying
from tests.contract.test_chats import messages
from tests.fakes.upstream import Answer, Call, echo, refusal, streamed

REWRITER = "rewriter-model"
DOWN = refusal(503, {"error": {"message": "down", "type": "x", "param": None, "code": None}})
LAST = "Can I take a suitcase with it?"
STORED = messages(("I bought the Lite ticket to Oslo.", "Great. How can I help?", LAST))
REWORDED = messages(
    ("So that Oslo trip is on, went for Lite!", "Nice, enjoy. Anything else?", "may i bring it?")
)
PLUS = messages(("I bought the Plus ticket to Oslo.", "Great. How can I help?", LAST))


class Engine:
    """Echoes; as the rewriter it gives one text to all, and is away while ``is_down``."""

    def __init__(self) -> None:
        self.is_down = False
        self.text = "Can I take a suitcase with the Lite ticket to Oslo?"
        self.asked: list[Call] = []

    def __call__(self, call: Call) -> Answer:
        if call.body.get("model") != REWRITER:
            return echo(call)
        self.asked.append(call)
        return DOWN if self.is_down else Answer(streamed([self.text]))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture(scope="module")
def rewriting(
    tmp_path_factory: pytest.TempPathFactory, serving_models: Path, engine: Engine
) -> Iterator[Stack]:
    named = {"SEMANTIC__REWRITER": REWRITER, "SEMANTIC__REWRITER_TIMEOUT_S": "30"}
    folder, models = tmp_path_factory.mktemp("rewriter"), ("stub-model", REWRITER)
    with relaying(folder, serving_models, engine, models, **named) as started:
        yield started


@pytest.fixture
def caller(rewriting: Stack, engine: Engine) -> Iterator[Relay]:
    engine.is_down = False
    engine.asked.clear()
    client = Relay(rewriting.url, {"x-strata-namespace": uuid.uuid4().hex})
    yield client
    client.close()


def counted(client: Client, outcome: str) -> float:
    found = re.search(
        rf'^strata_rewrites_total{{outcome="{outcome}"}} (\S+)', client.metrics(), re.MULTILINE
    )
    return float(found[1]) if found else 0.0


def test_chat_hits_when_its_rewritten_message_was_answered(caller: Relay, engine: Engine) -> None:
    """Another history in other words; the reasons show the rewriting, the metrics count it."""
    before = counted(caller, "used")
    caller.seed(STORED)
    response = caller.answer(
        messages(("Oslo trip is on, went for the Lite ticket!", "Nice. Anything else?", LAST))
    )
    assert response.headers["x-strata-cache"] == "semantic"
    assert counted(caller, "used") == before + 2
    systems = {call.body["messages"][0]["content"] for call in engine.asked}
    assert len(systems) == 1, "the instructions are the same each time"
    assert all(call.body["temperature"] == 0 for call in engine.asked)
    assert caller.answer(engine.text).headers["x-strata-cache"] == "semantic"


def test_chat_misses_when_the_rewriter_ignores_what_was_said(caller: Relay) -> None:
    """A rewriting that names what nobody said is not used; the rules decide."""
    before = counted(caller, "unused")
    caller.seed(STORED)
    missed = caller.answer(PLUS)
    assert missed.headers["x-strata-cache"] == "miss"
    assert counted(caller, "unused") == before + 1
    path = f"/admin/requests/{missed.headers['x-request-id']}"
    seen = until(lambda: caller.http.get(path).is_success and caller.http.get(path).json())
    assert "nobody said Lite" in str(seen)


def test_dry_run_asks_no_rewriter_when_a_request_would(caller: Relay, engine: Engine) -> None:
    """It judges the message as it stands, and says so."""
    caller.seed(STORED)
    engine.asked.clear()
    found = caller.lookup(caller.body(REWORDED))
    assert "a dry run asks no model" in str(found["reasons"])
    assert engine.asked == []


def test_chat_is_answered_when_the_rewriter_is_down(caller: Relay, engine: Engine) -> None:
    """The client sees nothing of it; the failure is counted."""
    engine.is_down = True
    assert caller.answer(REWORDED).headers["x-strata-cache"] == "miss"
    assert 'strata_store_failures_total{store="rewriter"}' in caller.metrics()


def test_local_model_rewrites_behind_pinned_instructions(start_stack: StartStack) -> None:
    """The bundled model may be the rewriter; whatever it says, the chat is answered."""
    stack = start_stack(SEMANTIC__REWRITER=CHAT_MODEL, SEMANTIC__REWRITER_TIMEOUT_S="60")
    pinned = stack.client.http.get("/admin/prefix/stats").json()["pinned_blocks"]
    assert pinned > 0
    stack.client.answer(STORED)
    assert until(lambda: counted(stack.client, "used") + counted(stack.client, "unused")) == 1
