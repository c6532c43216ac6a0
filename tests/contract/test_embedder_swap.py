"""Another embedder over the same data: entries are embedded anew and vectors never mix."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.client import until
from tests.contract.conftest import Relay
from tests.contract.stack import Stack, serving, upstream_toml
from tests.fakes.upstream import FakeUpstream

QUESTIONS = ("What is the capital of France?", "Who wrote the novel Middlemarch?")
REWORDED = ("what is the capital of france", "who wrote the novel middlemarch")
EMBEDDER = "STRATA_EMBEDDER__MODEL"


def half_of(bundled: Path, folder: Path) -> Path:
    """Write a second real embedder of the same width: the lower half of the bundled one."""
    shutil.copytree(bundled, folder)
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] //= 2
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Stack]:
    with FakeUpstream() as fake:
        toml = upstream_toml(fake.base_url)
        folder = tmp_path_factory.mktemp("swap")
        with serving(folder, serving_models, toml=toml, LOCAL__MODEL="none") as started:
            yield started


def collections(stack: Stack) -> set[str]:
    return {path.name for path in (stack.folder / "data" / "qdrant").glob("responses-*")}


def outcomes(relay: Relay, prompts: tuple[str, ...]) -> set[str]:
    return {relay.lookup(relay.body(prompt))["outcome"] for prompt in prompts}


def test_hits_by_likeness_come_back_when_the_embedder_changes(
    stack: Stack, bundled_embedder: Path, tmp_path: Path, clients: Callable[..., Relay]
) -> None:
    """There and back: nothing is lost or mixed, and the disk keeps one embedder's vectors only."""
    relay = clients(stack, Relay)
    for question in QUESTIONS:
        relay.seed(question)
    first = collections(stack)
    assert len(first) == 1
    assert outcomes(relay, REWORDED) == {"semantic"}
    stack.settings[EMBEDDER] = str(half_of(bundled_embedder, tmp_path / "half"))
    stack.restart()
    assert outcomes(relay, QUESTIONS) == {"exact"}
    until(lambda: outcomes(relay, REWORDED) == {"semantic"}, what="embedded anew")
    until(lambda: len(collections(stack)) == 1, what="old collection removed")
    second = collections(stack)
    assert second.isdisjoint(first)
    assert "strata_reembedded_entries 2.0" in relay.metrics()
    likeness = relay.lookup(relay.body(REWORDED[0]))["candidates"][0]["similarity"]
    del stack.settings[EMBEDDER]
    stack.restart()
    until(lambda: outcomes(relay, REWORDED) == {"semantic"}, what="embedded back")
    until(lambda: collections(stack) == first, what="the first name again, alone")
    back = relay.lookup(relay.body(REWORDED[0]))["candidates"][0]["similarity"]
    assert back != pytest.approx(likeness, abs=1e-4)
    assert len(relay.entries()) == len(QUESTIONS)
