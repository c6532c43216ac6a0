"""Bounds of a weighted wrong share that hold at any time, by betting against it. Pure.

A gambler bets on each draw that the share is on one side of a claimed one. Were the claim true, the
capital would multiply by 20 with probability 1/20 at most, however often one looks; so a claim at
which it did is left out. Draws may weigh differently and be wrong in part; nothing is assumed of
how weight and wrongness go together.

Source: Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, JRSS-B 86
(2024), with a fixed mixture of bets, so that the order of draws does not matter; Ville (1939).
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from semantic_layer.calibration.binomial import crossing

Array = npt.NDArray[np.float64]

# The first bets nearly all on "nothing is wrong": 400 right ones prove 1%; exactly it takes 299.
BETS_BELOW = np.array([0.98, 0.85, 0.65, 0.4])
_STAKES_BELOW = np.array([0.4, 0.2, 0.2, 0.2])
BETS_ABOVE = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 0.9])  # how far above the claim one bets it is
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Independent draws: how much each weighs, what share of it is wrong (0..1), how many such.

    A draw that proves less than a draw, for it is of something else, counts as a part of one.
    """

    weight: Array
    wrong: Array
    count: Array

    @classmethod
    def of(cls, weight: Array, wrong: Array, worth: Array) -> Self:
        """Return draws, ``worth`` (0..1) one each, in which equal ones are counted together."""
        pairs, place = np.unique(weight + 1j * wrong, return_inverse=True)
        return cls(pairs.real, pairs.imag, np.bincount(place, worth, len(pairs)).astype(np.float64))

    @property
    def num(self) -> float:
        """How many draws they are worth."""
        return float(self.count.sum())

    @property
    def share(self) -> float:
        """The weighted wrong share seen, 0 when nothing was."""
        total = float(self.count @ self.weight)
        return float((self.count * self.weight) @ self.wrong) / total if total else 0.0

    @property
    def relative_weight(self) -> Array:
        """Weights in units of the greatest."""
        return np.asarray(self.weight / self.weight.max(initial=_TINY))

    def none_wrong(self) -> "Draws":
        """Return the same draws as if all had been right."""
        return Draws(self.weight, np.zeros_like(self.wrong), self.count)


def log_wealth_below(draws: Draws, claim: float) -> float:
    """Return the log capital of betting that the wrong share is below ``claim``."""
    gain = draws.relative_weight * (claim - draws.wrong)
    logs = np.log1p(np.outer(BETS_BELOW / (1 - claim + _TINY), gain)) @ draws.count
    return float(np.logaddexp.reduce(np.log(_STAKES_BELOW) + logs))


def log_wealth_above(draws: Draws, claim: float) -> float:
    """Return the log capital of betting that the wrong share is above ``claim``."""
    gain = draws.relative_weight * (draws.wrong - claim)
    logs = np.log1p(np.outer(BETS_ABOVE / (claim + _TINY), gain)) @ draws.count
    return float(np.logaddexp.reduce(logs)) - math.log(len(BETS_ABOVE))


def upper_bound(draws: Draws, alpha: float = 0.05) -> float:
    """Return the least share (0..1) that the draws prove to be too high; 1 when none is."""
    goal = -math.log(alpha)
    if log_wealth_below(draws, 1 - _TINY) < goal:
        return 1.0
    return crossing(lambda claim: log_wealth_below(draws, claim) >= goal)


def lower_bound(draws: Draws, alpha: float = 0.05) -> float:
    """Return the greatest share (0..1) that the draws prove to be too low; 0 when none is."""
    goal = -math.log(alpha)
    if log_wealth_above(draws, _TINY) < goal:
        return 0.0
    return crossing(lambda claim: log_wealth_above(draws, claim) < goal)
