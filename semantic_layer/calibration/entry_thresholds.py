"""Thresholds of entries that have a history of their own. Pure.

An entry that was wrong is served only above the score it was wrong at, until it has been right so
often that its wrong share is expected to stay within the budget. One whose own labels prove a lower
threshold gets it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from semantic_layer.calibration.labels import Label
from semantic_layer.calibration.sample import Sample
from semantic_layer.calibration.walk import Proves, grid, lowest_within

_PRIOR_LABELS = 2.0  # what an entry is believed to be like before it is known: half the budget


def entry_thresholds(
    labels: Sequence[Label], threshold: float, budget: float, proves: Proves
) -> dict[str, float]:
    """Return the thresholds of entries that differ from their intent's."""
    histories: dict[str, list[Label]] = {}
    for label in labels:
        if label.entry_id:
            histories.setdefault(label.entry_id, []).append(label)
    own = {
        entry_id: _own(history, threshold, budget, proves)
        for entry_id, history in histories.items()
        if len(history) * budget > 1 or any(not label.right for label in history)
    }
    return {entry_id: found for entry_id, found in own.items() if found != threshold}


def _own(history: Sequence[Label], threshold: float, budget: float, proves: Proves) -> float:
    sample = Sample.of(history)
    if len(sample) * budget > 1:
        alone = replace(sample, cluster=np.arange(len(sample)))
        proven = lowest_within(alone, budget, proves=proves)
        if proven is not None:
            return min(proven, threshold)
    return expected_within(sample, threshold, budget)


def expected_within(sample: Sample, threshold: float, budget: float) -> float:
    """Return the lowest threshold from here up whose expected wrong share is within the budget.

    Expected is the mean of a beta posterior.
    """
    steps = np.concatenate(([threshold], grid()[::-1]))
    steps = steps[steps >= threshold]
    served = sample.score >= steps[:, None]
    wrong = served @ sample.wrong + _PRIOR_LABELS * budget / 2
    within = wrong / (served.sum(axis=1) + _PRIOR_LABELS) <= budget
    return float(steps[within][0]) if within.any() else 1.0
