"""When the wrong share of served hits has risen above its budget. Pure.

Each bet of `betting` that the share is above the budget starts afresh whenever it has lost its
stake, so what was right for long never outweighs what is wrong now. Within budget, an alarm is
raised once in `ALARM` labels at most.

Source: Shin, Ramdas and Rinaldo, E-detectors: a nonparametric framework for sequential change
detection (2022), the mixture of e-CUSUMs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semantic_layer.calibration.betting import BETS_ABOVE
from semantic_layer.calibration.labels import Label

ALARM = 100.0  # labels between two false alarms at least; by simulation 15,000 at half the budget


@dataclass(frozen=True, slots=True)
class Alarm:
    """Served hits were wrong too often, as was noticed ``at`` a time and is so ``since`` another.

    Both in Unix seconds.
    """

    at: float
    since: float


def alarms(labels: Sequence[Label], budget: float) -> list[Alarm]:
    """Return when served labels, oldest first, proved to be wrong too often.

    After an alarm the watch begins anew.
    """
    served = [label for label in labels if label.served]
    if not served or budget <= 0:
        return []
    heaviest = max(label.weight for label in served)
    rates = BETS_ABOVE / budget
    capital, since = np.ones_like(rates), np.full_like(rates, served[0].at)
    raised = []
    for label in served:
        since[capital <= 1.0] = label.at
        gain = label.weight / heaviest * (float(not label.right) - budget)
        capital = np.maximum(capital, 1.0) * (1.0 + rates * gain)
        if capital.mean() >= ALARM:
            raised.append(Alarm(label.at, float(since[capital.argmax()])))
            capital = np.ones_like(rates)
    return raised
