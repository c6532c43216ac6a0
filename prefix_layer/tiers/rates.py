"""Whether bringing a block from a tier beats computing it again, by what both took lately. Pure."""

import statistics
from collections import deque

_WINDOW = 16
_MARGIN = 0.9
_MIN_ROWS = 32  # of a step: with fewer its time is mostly that of reading the weights
_TRY_EVERY = 32


class Rates:
    """Medians of the last measurements. What was never measured is taken to pay."""

    def __init__(self, block_size: int, *, always: bool = False) -> None:
        self._block_size = block_size
        self._always = always
        self._compute_s: deque[float] = deque(maxlen=_WINDOW)
        self._load_s: dict[str, deque[float]] = {}
        self._num_refused = 0

    def saw_step(self, num_tokens: int, seconds: float) -> None:
        """Learn from a step what a token costs to compute."""
        if num_tokens >= _MIN_ROWS:
            self._compute_s.append(seconds / num_tokens)

    def saw_load(self, stage: str, seconds: float) -> None:
        """Learn what one block costs on a stage of its way."""
        self._load_s.setdefault(stage, deque(maxlen=_WINDOW)).append(seconds)

    def compute_s(self, num_blocks: int) -> float | None:
        """Estimate the seconds to compute blocks; None before any measurement."""
        if not self._compute_s:
            return None
        return statistics.median(self._compute_s) * self._block_size * num_blocks

    def pays(self, *stages: str) -> bool:
        """Say whether a block that passes these stages is there sooner than computed."""
        computed = self.compute_s(1)
        if self._always or computed is None:
            return True
        known = [self._load_s[stage] for stage in stages if stage in self._load_s]
        return sum(map(statistics.median, known)) < _MARGIN * computed

    def should_try(self) -> bool:
        """Say whether it is time to measure anew a way that does not pay."""
        self._num_refused += 1
        return self._num_refused % _TRY_EVERY == 0
