"""How many times likelier near questions are traps than thresholds were fitted for. Pure.

Fitted thresholds take one near question in ten for a trap. How often a pair of a given score is
wrong then is known from the questions they were fitted on; near-misses, whose answers are compared
for nothing, tell how often it is so here. No wrong answer need be served to find out.

Source: likelihood ratios of a fixed mixture of factors as a test martingale, Ville (1939); the
change of the odds by the share of traps alone is that of Saerens, Latinne and Decaestecker,
Adjusting the outputs of a classifier to new a priori probabilities, Neural Computation 14 (2002).
"""

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from semantic_layer.calibration.labels import Label, sampled, settled
from semantic_layer.calibration.pooled import Expected

_FACTORS = np.array([3.0, 10.0, 30.0])
_PROVEN = 20.0  # capital that traffic as fitted for reaches with probability 1/20 at most
_LEAST_LABELS = 8  # a handful is luck
_NEAR = 0.25  # scores from here on tell of near questions; unrelated ones are wrong anyway
_MOST = 100.0
_HALVINGS = 30

Array = npt.NDArray[np.float64]


def trap_odds(labels: Iterable[Label], expected: Expected, *, below: float) -> float:
    """Return by what factor the odds of "wrong" exceed what was expected; 1 until that is proven.

    ``labels`` are those of one scorer. Each stored text speaks once, by what was found first, and
    only with scores ``below`` this, where rules have not settled the pair.
    """
    first: dict[tuple[str, ...], Label] = {}
    for label in sampled(settled(labels)):
        if _NEAR <= label.score < below:
            first.setdefault(_stored(label), label)
    kept = first.values()
    if len(kept) < _LEAST_LABELS:
        return 1.0
    odds = np.array([expected.log_odds(label.score) for label in kept])
    wrong = np.array([not label.right for label in kept])
    as_fitted = _log_likelihoods(odds, wrong, np.zeros(1))
    gains = _log_likelihoods(odds, wrong, np.log(_FACTORS)) - as_fitted
    capital = np.logaddexp.reduce(np.cumsum(gains, axis=1), axis=0) - math.log(len(_FACTORS))
    is_proven = capital[_LEAST_LABELS - 1 :].max() >= math.log(_PROVEN)
    return _likeliest(odds, wrong) if is_proven else 1.0


def _stored(label: Label) -> tuple[str, ...]:
    stored = label.entry_id or label.stored_text
    return (label.tenant, stored) if stored else (label.label_id,)


def _log_likelihoods(odds: Array, wrong: npt.NDArray[np.bool_], shifts: Array) -> Array:
    """Return the log likelihood of each verdict, ``(len(shifts), len(odds))``."""
    moved = odds + shifts[:, None]
    return np.asarray(-np.logaddexp(0.0, np.where(wrong, -moved, moved)))


def _likeliest(odds: Array, wrong: npt.NDArray[np.bool_]) -> float:
    """Return the factor, 1 to `_MOST`, under which the verdicts are likeliest."""
    low, high = 0.0, math.log(_MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        expected = float((1 / (1 + np.exp(-(odds + middle)))).sum())
        low, high = (middle, high) if expected < wrong.sum() else (low, middle)
    return math.exp(low)
