"""Renders and tokenises a log and counts what a prefix cache would find, beside the linter."""

from dataclasses import dataclass, field
from pathlib import Path

from gateway.backends.tokenizer import Tokenizer
from gateway.errors import BadRequest
from gateway.lint.hits import PrefixReplay
from gateway.lint.logged import Row, read_logged
from gateway.lint.tokens import PromptTokens


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache whose hits are predicted, and the folder of the model that it serves."""

    model_path: Path
    block_size: int
    num_blocks: int


@dataclass(slots=True)
class Hits:
    """Tokens of all prompts, and how many of them were cached; ``bad`` are refused rows."""

    num_tokens: int = 0
    num_cached: int = 0
    bad: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Share of prompt tokens that were cached."""
        return self.num_cached / self.num_tokens if self.num_tokens else 0.0


class HitCounter:
    """Takes rows one by one."""

    def __init__(self, cache: Cache, tokens: PromptTokens | None = None) -> None:
        self._tokens = tokens or PromptTokens(Tokenizer(cache.model_path))
        self._replay = PrefixReplay(cache.block_size, cache.num_blocks)
        self._bad: list[tuple[str, int, str]] = []

    def read(self, file: str, line: int, row: Row) -> None:
        """Take the requests of one row; what is no request is the linter's to tell."""
        try:
            requests = list(read_logged(row))
        except BadRequest:
            return
        for logged in requests:
            try:
                rendered = self._tokens.render(logged.messages, logged.tools)
            except BadRequest as error:
                self._bad.append((file, line, error.message))
                continue
            self._replay.visit(logged.model, self._tokens.encode(rendered))

    def hits(self) -> Hits:
        """Return the counts so far."""
        return Hits(self._replay.num_tokens, self._replay.num_cached, self._bad)
