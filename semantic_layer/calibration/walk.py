"""The lowest threshold whose wrong share is proven to stay within a budget. Pure.

Thresholds are tried from strict to loose and the first that fails ends the walk, so trying many
costs no confidence. There are a few places to begin, each with a part of the allowed error, which a
walk that arrives there takes up; so one unlucky label near the top is not the end. Where they are
depends on scores and weights only, never on verdicts.

Source: Angelopoulos, Bates, Candès, Jordan and Lei, Learn then test: calibrating predictive
algorithms to achieve risk control (2021), section 2.3 (fixed-sequence testing, fallback).
"""

import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from semantic_layer.calibration import betting, binomial
from semantic_layer.calibration.betting import Array, Draws
from semantic_layer.calibration.sample import Sample

Proves = Callable[[Draws, float, float], bool]
_LEAST = 0.5
_STEPS = 120
_LEAST_ERROR = 1e-9
# Where walks begin: at how many times the evidence that could just do, with what part of alpha.
_STARTS = ((1.0, 0.3), (1.2, 0.2), (1.6, 0.2), (2.5, 0.15), (6.0, 0.1), (15.0, 0.05))


def grid(least: float = _LEAST) -> Array:
    """Return thresholds from 1 down to ``least``, evenly spaced in log odds."""
    top, bottom = math.log(1e4), math.log(least / (1 - least))
    odds = np.linspace(top, bottom, _STEPS)
    return np.concatenate(([1.0], 1 / (1 + np.exp(-odds))))


def proves_always(draws: Draws, budget: float, alpha: float) -> bool:
    """Say whether the wrong share is proven below the budget, at every time one looks."""
    return betting.log_wealth_below(draws, budget) >= -math.log(alpha)


def proves_once(draws: Draws, budget: float, alpha: float) -> bool:
    """Say whether it is proven by labels that are looked at once; exact for plain counts."""
    if not is_counted(draws):
        return proves_always(draws, budget, alpha)
    wrong = round(float(draws.wrong @ draws.count))
    return binomial.upper_bound(wrong, round(draws.num), alpha) <= budget


def is_counted(draws: Draws) -> bool:
    """Say whether all draws weigh the same and are wrong wholly or not at all."""
    is_whole = np.isin(draws.wrong, (0.0, 1.0)).all() and (draws.count % 1 == 0).all()
    return bool(is_whole) and len(np.unique(draws.weight)) == 1


def lowest_within(
    sample: Sample,
    budget: float,
    *,
    alpha: float = 0.05,
    proves: Proves = proves_always,
) -> float | None:
    """Return the lowest threshold proven to keep the wrong share within ``budget``, if any.

    It is never below the scores that were labelled.
    """
    if not len(sample) or budget <= 0:
        return None
    steps = grid()
    steps = np.append(steps[steps > sample.score.min()], sample.score.min())
    starts = _starts(sample, budget, alpha, steps, proves)
    allowed, lowest = 0.0, None
    for index in range(min(starts, default=len(steps)), len(steps)):
        allowed += starts.get(index, 0.0)
        if not allowed:
            continue
        served = sample.served_at(steps[index])
        if served.share <= budget and proves(served.draws(), budget, allowed):
            lowest = float(steps[index])
        else:
            allowed = 0.0
    return lowest


def _starts(
    sample: Sample, budget: float, alpha: float, steps: Array, proves: Proves
) -> dict[int, float]:
    """Return the indexes of the thresholds to begin at, each with the error allowed there."""
    starts: dict[int, float] = {}
    for times, part in (*_STARTS, (1.0, 1.0)):
        error = min(alpha * part, alpha - sum(starts.values()))
        if error < _LEAST_ERROR:
            break
        index = bisect_left(
            range(len(steps)), True, key=_could_prove(sample, budget, steps, proves, error**times)
        )
        if index < len(steps):
            starts[index] = starts.get(index, 0.0) + error
    return starts


def _could_prove(
    sample: Sample, budget: float, steps: Array, proves: Proves, error: float
) -> Callable[[int], bool]:
    """Return whether the labels served at a step would prove the budget, were all of them right."""
    return lambda index: proves(sample.served_at(steps[index]).draws().none_wrong(), budget, error)
