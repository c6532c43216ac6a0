"""Two thresholds compared on one intent's traffic, with intervals that hold at every look. Pure.

Which of the two a request gets follows from its key alone, so a repeat gets the same one. The hit
share of each arm is bounded by a Beta-mixture martingale: the interval holds at all times at once,
so a trial may be watched and stopped whenever it is decided.

Source: Robbins, Statistical methods related to the law of the iterated logarithm (1970); Ville
(1939) for the bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

Arm = Literal["a", "b"]
TrialVerdict = Literal["running", "better", "worse", "wrong", "no difference"]

ALPHA = 0.05
_HALVINGS = 50
_PRIOR = 0.5  # Jeffreys: as tight near 0 and 1 as in the middle


@dataclass(frozen=True, slots=True)
class Tally:
    """Look-ups of one arm that came to a semantic hit or a miss."""

    num: int = 0
    hits: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.num + other.num, self.hits + other.hits)

    @property
    def share(self) -> float | None:
        """The hit share, None before any look-up."""
        return self.hits / self.num if self.num else None

    def interval(self, alpha: float = ALPHA) -> tuple[float, float]:
        """Return the ends of an interval that holds the true share at all times."""
        if not self.num:
            return 0.0, 1.0
        seen, goal = self.hits / self.num, -math.log(alpha)
        low = _edge(lambda share: self._log_wealth(share) < goal, seen, 0.0)
        high = _edge(lambda share: self._log_wealth(share) < goal, seen, 1.0)
        return low, high

    def _log_wealth(self, share: float) -> float:
        """Return the log of the mixture's likelihood over that of a claimed share."""
        misses = self.num - self.hits
        mixed = _log_beta(self.hits + _PRIOR, misses + _PRIOR) - _log_beta(_PRIOR, _PRIOR)
        return mixed - _log_power(share, self.hits) - _log_power(1 - share, misses)


@dataclass(frozen=True, slots=True)
class Trial:
    """The two thresholds (0..1) of a running trial; None is the one in force otherwise."""

    trial_id: str
    a: float | None
    b: float | None

    def arm_of(self, key: str) -> Arm:
        """Return the arm of a request's exact key."""
        return arm_of(self.trial_id, key)

    def threshold(self, arm: Arm) -> float | None:
        """Return an arm's threshold."""
        return self.a if arm == "a" else self.b


def arm_of(trial_id: str, key: str) -> Arm:
    """Return the arm of a request's exact key: half of all keys each, another half per trial."""
    digest = blake2b(key.encode(), key=trial_id.encode()[:64], digest_size=1).digest()
    return "b" if digest[0] & 1 else "a"


def judge_trial(
    one: Tally, other: Tally, *, wrong_low: float, wrong_high: float, budget: float, most: int
) -> TrialVerdict:
    """Say what is decided of arm b (``other``), at once or never mind how often one looks.

    ``wrong_low`` and ``wrong_high`` bound the wrong share at b's threshold. It is ``wrong`` once
    that is proven above the budget, ``better`` once b hits more within it, ``worse`` once b hits
    less, and makes ``no difference`` after ``most`` look-ups of each arm.
    """
    if wrong_low > budget:
        return "wrong"
    low_a, high_a = one.interval(ALPHA / 2)
    low_b, high_b = other.interval(ALPHA / 2)
    if high_b < low_a:
        return "worse"
    if low_b > high_a and wrong_high <= budget:
        return "better"
    return "no difference" if min(one.num, other.num) >= most else "running"


def _edge(is_inside: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where going from inside to outside leaves the interval."""
    if is_inside(outside):
        return outside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return outside


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _log_power(base: float, exponent: int) -> float:
    if exponent == 0:
        return 0.0
    return exponent * math.log(base) if base > 0 else -math.inf
