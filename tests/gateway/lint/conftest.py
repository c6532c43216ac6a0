"""A linter over rows, with the bundled model's tokenizer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.tokenizer import Tokenizer
from gateway.lint import Cache, LogReader, PromptTokens, Report

Lint = Callable[[list[dict[str, Any]]], Report]


@pytest.fixture(scope="session")
def tokens(bundled_chat_model: Path) -> PromptTokens:
    return PromptTokens(Tokenizer(bundled_chat_model))


@pytest.fixture
def lint(bundled_chat_model: Path, tokens: PromptTokens) -> Lint:
    def run(rows: list[dict[str, Any]]) -> Report:
        cache = Cache(bundled_chat_model, block_size=16, num_blocks=4096)
        reader = LogReader(cache, lambda _: None, tokens)
        reader.read("log", [json.dumps(row).encode() for row in rows])
        return reader.report()

    return run
