"""Which of many chances to learn are taken: a share of them, and so many a minute."""

import random
import time
from collections.abc import Callable

MINUTE_S = 60.0
_OVERRUN = 2  # a minute that is busier than the last takes so many times its number at most


class Sampling:
    """Draws chances at random, with a known probability.

    That is ``share`` (0..1), or less where more than ``most_per_minute`` would come of it.
    """

    def __init__(
        self,
        share: float,
        most_per_minute: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._share = share
        self._most = most_per_minute
        self._clock = clock
        self._draw = draw
        self._minute = -1
        self._offered = self._offered_before = self._taken = 0

    def taken(self) -> float | None:
        """Offer one chance; return one over its probability when it is taken."""
        self._turn()
        self._offered += 1
        if not self._share or self._taken >= self._most * _OVERRUN:
            return None
        busy = max(self._offered, self._offered_before)
        probability = min(self._share, self._most / busy)
        if self._draw() >= probability:
            return None
        self._taken += 1
        return 1 / probability

    def _turn(self) -> None:
        minute = int(self._clock() // MINUTE_S)
        if minute != self._minute:
            self._offered_before = self._offered if minute == self._minute + 1 else 0
            self._minute, self._offered, self._taken = minute, 0, 0
