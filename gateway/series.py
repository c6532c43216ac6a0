"""Traffic by the minute, for the last day: sums in memory that do not grow. Knows no HTTP."""

import time
from collections import Counter, deque
from collections.abc import Callable

import msgspec

from gateway.record import RequestRecord
from gateway.stats import counted_as, tokens_saved

MINUTE_S = 60
MAX_MINUTES = 24 * 60


class Span(msgspec.Struct, frozen=True):
    """What came within some minutes; ``at`` is their start in Unix seconds."""

    at: int
    outcomes: dict[str, int]
    tokens_saved: dict[str, int]


class TrafficSeries:
    """Sums one process's requests by the minute. ``clock`` is Unix seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._minutes: deque[tuple[int, Counter[str], Counter[str]]] = deque(maxlen=MAX_MINUTES)

    def record(self, record: RequestRecord) -> None:
        """Count one request that ended."""
        minute = int(self._clock()) // MINUTE_S
        if not self._minutes or self._minutes[-1][0] < minute:
            self._minutes.append((minute, Counter(), Counter()))
        _, outcomes, saved = self._minutes[-1]
        outcomes[counted_as(record)] += 1
        saved.update(tokens_saved(record))

    def spans(self, num_minutes: int, step: int = 1) -> list[Span]:
        """Return the last minutes, oldest first, ``step`` of them to a span; the last is open."""
        last = int(self._clock()) // MINUTE_S
        first = (last // step - (num_minutes - 1) // step) * step
        starts = range(first, last + 1, step)
        sums = {start: (Counter[str](), Counter[str]()) for start in starts}
        for minute, outcomes, saved in self._minutes:
            if first <= minute <= last:
                into = sums[minute - minute % step]
                into[0].update(outcomes)
                into[1].update(saved)
        return [
            Span(start * MINUTE_S, dict(outcomes), dict(saved))
            for start, (outcomes, saved) in sums.items()
        ]
