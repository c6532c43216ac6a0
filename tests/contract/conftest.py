"""Gateways for the acceptance tests: two that are shared, and as many more as a test needs."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from gateway.bundled import BundledModels
from tests.contract.client import Client
from tests.contract.pair import PATIENT, Pair, redis_server
from tests.contract.stack import Stack, serving, upstream_toml
from tests.fakes.upstream import FakeUpstream, echo

Headers = dict[str, str]


class StartStack(Protocol):
    def __call__(self, *, toml: str = "", **settings: str) -> Stack: ...


@pytest.fixture(scope="session")
def serving_models(bundled_models: BundledModels, models_dir: Path) -> Path:
    """The models folder, everything in it prepared."""
    return models_dir


@pytest.fixture
def start_stack(tmp_path: Path, serving_models: Path) -> Iterator[StartStack]:
    """Start gateways of this test's own; they are stopped, without a trace, when it ends."""
    with ExitStack() as running:

        def start(*, toml: str = "", **settings: str) -> Stack:
            folder = tmp_path / uuid.uuid4().hex[:8]
            return running.enter_context(serving(folder, serving_models, toml=toml, **settings))

        yield start


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Stack]:
    """The gateway as it comes: bundled models, embedded stores."""
    with serving(tmp_path_factory.mktemp("local"), serving_models) as started:
        yield started


@pytest.fixture(scope="session")
def shared_upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream() as fake:
        yield fake


@pytest.fixture(scope="session")
def relay_stack(
    tmp_path_factory: pytest.TempPathFactory, serving_models: Path, shared_upstream: FakeUpstream
) -> Iterator[Stack]:
    """A gateway without a local model, in front of a scripted upstream."""
    toml = upstream_toml(shared_upstream.base_url)
    folder = tmp_path_factory.mktemp("relay")
    with serving(folder, serving_models, toml=toml, LOCAL__MODEL="none") as started:
        yield started


@pytest.fixture(scope="session")
def running_pair(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Pair]:
    """Two gateways over one Redis, and as many more as are started."""
    with ExitStack() as running:
        url = running.enter_context(redis_server(tmp_path_factory.mktemp("redis")))
        upstream = running.enter_context(FakeUpstream())

        def start() -> Stack:
            folder = tmp_path_factory.mktemp("gateway")
            settings = {"LOCAL__MODEL": "none", "REDIS__URL": url, **PATIENT}
            toml = upstream_toml(upstream.base_url)
            return running.enter_context(serving(folder, serving_models, toml=toml, **settings))

        yield Pair(start, upstream)


@pytest.fixture
def pair(running_pair: Pair) -> Iterator[Pair]:
    """The two gateways; their upstream echoes unless the test gives it another script."""
    running_pair.upstream.script = echo
    running_pair.upstream.calls.clear()
    yield running_pair
    running_pair.upstream.script = echo
    running_pair.close()


@pytest.fixture
def upstream(shared_upstream: FakeUpstream) -> Iterator[FakeUpstream]:
    """The relay gateway's upstream; echoes unless the test gives it another script."""
    shared_upstream.script = echo
    shared_upstream.calls.clear()
    yield shared_upstream
    shared_upstream.script = echo


class Relay(Client):
    """A client that asks for the scripted upstream's model."""

    def body(self, prompt: object, **fields: object) -> dict[str, object]:
        return super().body(prompt, **{"model": "stub-model", **fields})  # type: ignore[arg-type]


@pytest.fixture
def space() -> Headers:
    """Headers of a cache space that no other test uses."""
    return {"x-strata-namespace": uuid.uuid4().hex}


@pytest.fixture
def client(stack: Stack, space: Headers) -> Iterator[Client]:
    """A caller of the shared local gateway, in a cache space of its own."""
    caller = Client(stack.url, space)
    yield caller
    caller.close()


@pytest.fixture
def relay(relay_stack: Stack, upstream: FakeUpstream, space: Headers) -> Iterator[Relay]:
    """A caller of the shared relay gateway, in a cache space of its own."""
    caller = Relay(relay_stack.url, space)
    yield caller
    caller.close()


@pytest.fixture
def clients() -> Iterator[Callable[..., Client]]:
    """Make callers of any gateway."""
    with ExitStack() as opened:

        def make(stack: Stack, kind: type[Client] = Client, **headers: str) -> Client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            caller = kind(stack.url, named)
            opened.callback(caller.close)
            return caller

        yield make
