"""One gateway for all clients: a local model, a scripted upstream, no semantic layer."""

import gc
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from gateway.bundled import BundledModels
from tests.clients.face import ModelClient
from tests.clients.node_clients import NodeClient
from tests.clients.python_clients import CLIENTS
from tests.clients.scripts import Script
from tests.contract.stack import Stack, serving, upstream_toml
from tests.fakes.upstream import FakeUpstream

LOCAL, REMOTE = "smollm2-135m-instruct", "stub-model"
NODE = {"openai-node": "openai_client.mjs", "vercel-ai": "ai_client.mjs"}
EVERY = {**CLIENTS, **{name: partial(NodeClient, script) for name, script in NODE.items()}}


@dataclass(frozen=True)
class Served:
    """The gateway, its upstream and what the upstream answers."""

    stack: Stack
    upstream: FakeUpstream
    script: Script

    def hits(self) -> int:
        """Return how many answers came from the exact cache so far."""
        stats = self.stack.client.http.get("/admin/stats").json()
        return int(stats["outcomes"].get("exact", 0))


@pytest.fixture(scope="session")
def served(
    tmp_path_factory: pytest.TempPathFactory, bundled_models: BundledModels, models_dir: Path
) -> Iterator[Served]:
    script = Script()
    folder = tmp_path_factory.mktemp("clients")
    with FakeUpstream(script) as fake:
        toml = upstream_toml(fake.base_url)
        with serving(folder, models_dir, toml=toml, SEMANTIC__ENABLED="false") as stack:
            yield Served(stack, fake, script)
            script.gate.open()


@pytest.fixture(params=EVERY)
def named_client(
    request: pytest.FixtureRequest, served: Served
) -> Iterator[tuple[str, ModelClient]]:
    """A client and its name."""
    made = EVERY[request.param](served.stack.url)
    yield request.param, made
    made.close()
    del made
    with warnings.catch_warnings():  # some clients leave their sockets to the collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
