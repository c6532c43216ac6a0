"""The bundled model's tokenizer, and a linter over rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.tokenizer import Tokenizer
from gateway.lint import Linter, Report

Lint = Callable[[list[dict[str, Any]]], Report]


@pytest.fixture(scope="session")
def tokenizer(bundled_chat_model: Path) -> Tokenizer:
    return Tokenizer(bundled_chat_model)


@pytest.fixture
def lint(tokenizer: Tokenizer) -> Lint:
    def run(rows: list[dict[str, Any]]) -> Report:
        linter = Linter(tokenizer, block_size=16, num_blocks=4096)
        for number, row in enumerate(rows, start=1):
            linter.read("log", number, row)
        return linter.report()

    return run
