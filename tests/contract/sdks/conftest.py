"""Each SDK in turn, over the local model or over the scripted upstream."""

import uuid
from typing import Any

import pytest

from tests.contract.client import CHAT_MODEL
from tests.contract.sdks.vendors import SDKS
from tests.contract.stack import Stack
from tests.fakes.upstream import FakeUpstream


@pytest.fixture(params=SDKS, ids=lambda kind: kind.kind)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def relayed(kind: Any, relay_stack: Stack, upstream: FakeUpstream) -> Any:
    """The SDK over the gateway in front of the scripted upstream."""
    return kind(relay_stack.url, "stub-model", uuid.uuid4().hex)


@pytest.fixture
def local(kind: Any, stack: Stack) -> Any:
    """The SDK over the gateway with the local model."""
    return kind(stack.url, CHAT_MODEL, uuid.uuid4().hex)
