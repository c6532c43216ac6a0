"""A store of each kind, empty for every test, and the clock it goes by."""

import shutil
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from semantic_layer.stores.response_store import MemoryResponseStore, ResponseStore
from semantic_layer.stores.response_store.redis import RedisResponseStore
from semantic_layer.stores.valkey import Valkey
from tests.fakes.stores import Clock


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["memory", "valkey", "redis"])
async def url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """Memory, our packaged Valkey, and Debian's Redis where it is installed."""
    if request.param == "memory":
        yield "memory"
        return
    found = shutil.which("redis-server")
    if request.param == "redis" and found is None:
        pytest.skip("redis-server is not on the PATH")
    binary = Path(found) if request.param == "redis" and found else None
    server = await Valkey.start(tmp_path_factory.mktemp(request.param), binary=binary)
    yield server.url
    await server.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture(loop_scope="module")
async def store(url: str, clock: Clock) -> AsyncIterator[ResponseStore]:
    made: ResponseStore
    if url == "memory":
        made = MemoryResponseStore(clock=clock)
    else:
        made = RedisResponseStore(url, prefix=f"t{uuid.uuid4().hex}", clock=clock)
    yield made
    await made.close()
