"""The phases of one sequence in the engine, clocked from outside. Knows no engine."""

import time
from collections.abc import Callable
from typing import Self

from prefix_layer import Tokens

OnPhase = Callable[[str, float, float], None]


def no_phase(_phase: str, _seconds: float, _ago_s: float) -> None:
    """Forget it."""


class Phases:
    """Tells ``on_phase`` how long a sequence waited, read its prompt and wrote its answer.

    With each phase goes how long ago it ended. One that was begun is told when the block is left,
    however it ended.
    """

    def __init__(self, on_phase: OnPhase) -> None:
        self._on_phase = on_phase
        self._started = time.perf_counter()
        self._first: float | None = None

    def __enter__(self) -> Self:
        return self

    def saw(self, tokens: Tokens) -> None:
        """Take note of a step; the first one ends the prompt."""
        if self._first is None:
            self._first = time.perf_counter()
            prefill_s = max(0.0, self._first - self._started - tokens.waited_s)
            self._on_phase("queue", tokens.waited_s, prefill_s)
            self._on_phase("prefill", prefill_s, 0.0)

    def __exit__(self, *_: object) -> None:
        if self._first is not None:
            self._on_phase("decode", time.perf_counter() - self._first, 0.0)
