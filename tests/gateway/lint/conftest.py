"""A linter over rows, with the bundled model's tokenizer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.tokenizer import Tokenizer
from gateway.lint import Cache, Fix, LogReader, PromptTokens, Report, fix_file, lint_file

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


class Desk:
    """Lints and mends rows in a folder."""

    def __init__(self, folder: Path, model: Path, tokens: PromptTokens) -> None:
        self._folder = folder
        self._cache = Cache(model, block_size=16, num_blocks=4096)
        self._tokens = tokens

    def fix(self, rows: list[dict[str, Any]]) -> tuple[Report, Fix, list[dict[str, Any]]]:
        source, output = self._folder / "log.jsonl", self._folder / "mended.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        before = lint_file(self._cache, source, "log", lambda _: None, self._tokens)
        fixed = fix_file(self._cache, source, output, before, lambda _: None, self._tokens)
        return before, fixed, [json.loads(line) for line in output.read_text().splitlines()]


@pytest.fixture
def desk(tmp_path: Path, bundled_chat_model: Path, tokens: PromptTokens) -> Desk:
    return Desk(tmp_path, bundled_chat_model, tokens)
