"""The default threshold of any budget, fitted on written questions of many kinds. Pure.

A place to start, no proof: on the questions it was fitted on, with one in ten that come near a
stored one a trap (an assumption), the wrong share among served answers is within the budget at
each single threshold, taking the upper 95% end of the traps' share. As the threshold was chosen on
the same questions, the confidence of the choice is lower. It says nothing of traffic with more
traps, or of questions of another kind: near-misses show the former before a wrong answer is served
(`trap_odds`), labels of one's own traffic both (`calibration`), and they replace it as they come.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from semantic_layer.resources import load_json

DATA = "thresholds.json"


@dataclass(frozen=True, slots=True)
class Expected:
    """How often pairs of a score are wrong, on the questions that thresholds were fitted on.

    The log odds of "wrong" are a straight line over the score's own log odds.
    """

    intercept: float
    slope: float

    def log_odds(self, score: float) -> float:
        """Return the log odds that a pair of this score is wrong."""
        return self.intercept + self.slope * log_odds(score)


@dataclass(frozen=True, slots=True)
class PooledThresholds:
    """Thresholds by budget, of the scores of one scorer (its fingerprint).

    ``knots`` are (budget, threshold), budgets rising and thresholds falling. ``expected`` is what
    they take for granted, where that is known.
    """

    fingerprint: str
    knots: Sequence[tuple[float, float]]
    expected: Expected | None = None

    @classmethod
    def matching(cls, fingerprint: str, name: str = DATA) -> Self | None:
        """Return the bundled thresholds when they are of these scores, else None."""
        data: Mapping[str, Any] = load_json(name)
        if data["fingerprint"] != fingerprint:
            return None
        knots = tuple((budget, least) for budget, least in data["knots"])
        return cls(fingerprint, knots, Expected(**data["expected"]))

    def of(self, budget: float) -> float:
        """Return the threshold of a budget, both 0..1: 1 for none, never below what was proven.

        Under the least budget that was proven, the distance to certainty shrinks in proportion.
        """
        (first, strict), (last, loose) = self.knots[0], self.knots[-1]
        if budget <= first:
            return 1 - (1 - strict) * budget / first
        for (b0, t0), (b1, t1) in pairwise(self.knots):
            if budget < b1:
                return t0 if b0 == b1 else t0 + (t1 - t0) * (budget - b0) / (b1 - b0)
        assert last <= budget, "knots rise"
        return loose


def shifted(threshold: float, by: float) -> float:
    """Return a threshold moved in log odds; certainty stays certain."""
    if not 0 < threshold < 1:
        return threshold
    return 1 / (1 + math.exp(-(log_odds(threshold) + by)))


def log_odds(share: float) -> float:
    """Return the log odds of a share, bounded away from 0 and 1."""
    share = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(share / (1 - share))
