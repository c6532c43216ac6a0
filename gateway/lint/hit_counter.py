"""Renders and tokenises a log and counts what a prefix cache would find, beside the linter."""

from dataclasses import dataclass, field
from pathlib import Path

from gateway.backends.tokenizer import Tokenizer
from gateway.errors import BadRequest
from gateway.lint.hits import PrefixReplay
from gateway.lint.logged import Row, read_logged
from gateway.lint.tokens import PromptTokens

AMPLE_TOKENS = 1 << 21  # that most logs' shared prefixes fit in


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache whose hits are predicted, and the folder of the model that it serves."""

    model_path: Path
    block_size: int
    num_blocks: int


@dataclass(slots=True)
class Hits:
    """Tokens of all prompts, and how many of them were cached; ``bad`` are refused rows.

    ``num_ample`` would be cached where nothing has to make room.
    """

    num_tokens: int = 0
    num_cached: int = 0
    num_ample: int = 0
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
        ample = AMPLE_TOKENS // cache.block_size
        is_ample = cache.num_blocks >= ample
        self._ample = self._replay if is_ample else PrefixReplay(cache.block_size, ample)
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
            ids = self._tokens.encode(rendered)
            for replay in {self._replay, self._ample}:
                replay.visit(logged.model, ids)

    def hits(self) -> Hits:
        """Return the counts so far."""
        replay = self._replay
        return Hits(replay.num_tokens, replay.num_cached, self._ample.num_cached, self._bad)
