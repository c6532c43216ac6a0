"""Gateways that serve a tiny local model, and one that all these tests share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.prefix_admin.desk import Desk
from tests.contract.stack import Stack, serving


@pytest.fixture(scope="session")
def serve(
    tiny_chat: Path, serving_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    def start(**settings: str) -> Any:
        settings = {"SEMANTIC__ENABLED": "false", "LOCAL__MODEL": str(tiny_chat)} | settings
        return serving(tmp_path_factory.mktemp("prefix"), serving_models, **settings)

    return start


@pytest.fixture(scope="session")
def tiny(serve: Callable[..., Any]) -> Iterator[Stack]:
    with serve(LOCAL__KV_TOKENS="16384") as stack:
        yield stack


@pytest.fixture
def desk(tiny: Stack) -> Desk:
    desk = Desk(tiny)
    desk.reset()
    return desk
