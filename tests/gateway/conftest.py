"""A caller of a gateway in process, and the upstream backend before a scripted server."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from gateway.backends.upstream import UpstreamBackend
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway
from tests.fakes.upstream import FakeUpstream
from tests.gateway.chat import TEXT
from tests.gateway.upstream_calls import Backends


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with MemoryGateway(FakeBackend(whole(TEXT))).client() as client:
        yield client


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream() as fake:
        yield fake


@pytest.fixture
async def backends() -> AsyncIterator[Backends]:
    opened: list[UpstreamBackend] = []

    def open_backend(base_url: str, **settings: Any) -> UpstreamBackend:
        opened.append(UpstreamBackend("stub", base_url, ["stub-model"], **settings))
        return opened[-1]

    yield open_backend
    for backend in opened:
        await backend.close()


@pytest.fixture
def backend(upstream: FakeUpstream, backends: Backends) -> UpstreamBackend:
    return backends(upstream.base_url)
