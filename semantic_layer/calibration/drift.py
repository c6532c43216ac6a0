"""When the wrong share of served hits has risen above its budget. Pure.

Each bet of `betting` that the share is above the budget starts afresh whenever it has lost its
stake, so what was right for long never outweighs what is wrong now. Within budget, an alarm is
raised once in `ALARM` labels at most. Sampled labels and people's word are watched side by side:
nobody samples complaints, so each is held against all hits since the one before, as if those that
nobody complained of had been right.

Source: Shin, Ramdas and Rinaldo, E-detectors: a nonparametric framework for sequential change
detection (2022), the mixture of e-CUSUMs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from semantic_layer.calibration.betting import BETS_ABOVE, Array
from semantic_layer.calibration.labels import Label, sampled

ALARM = 300.0  # labels between two false alarms at least; by simulation 100,000 at half the budget
_BETS = BETS_ABOVE[:-1]  # two wrong ones next to each other, all staked on it, would raise one


@dataclass(frozen=True, slots=True)
class Alarm:
    """Served hits were wrong too often, as was noticed ``at`` a time and is so ``since`` another.

    Both in Unix seconds. ``by_people`` says that it was their word, else what was sampled.
    """

    at: float
    since: float
    by_people: bool = False


def alarms(labels: Sequence[Label], budget: float) -> list[Alarm]:
    """Return when served labels, oldest first, proved to be wrong too often.

    After an alarm the watch begins anew.
    """
    served = [label for label in labels if label.served]
    if not served or budget <= 0:
        return []
    heaviest = max((label.weight for label in sampled(served)), default=1.0)
    by_chance, by_people = _Watch(budget, served[0].at), _Watch(budget, served[0].at)
    raised = []
    for label in served:
        is_told = label.source == "feedback"
        watch = by_people if is_told else by_chance
        by_people.see_right(label.silent, label.at)
        watch.see(label, 1.0 if is_told else label.weight / heaviest)
        if watch.is_proven:
            raised.append(Alarm(label.at, watch.since, is_told))
            by_chance, by_people = _Watch(budget, label.at), _Watch(budget, label.at)
    return raised


@dataclass(slots=True)
class _Watch:
    """The capital of each bet, and since when it has been above its stake."""

    budget: float
    start: float
    _capital: Array = field(default_factory=lambda: np.ones_like(_BETS))
    _since: Array = field(init=False)

    def __post_init__(self) -> None:
        self._since = np.full_like(_BETS, self.start)

    @property
    def is_proven(self) -> bool:
        return bool(self._capital.mean() >= ALARM)

    @property
    def since(self) -> float:
        return float(self._since[self._capital.argmax()])

    def see(self, label: Label, weight: float) -> None:
        self._since[self._capital <= 1.0] = label.at
        gain = weight * (float(not label.right) - self.budget)
        self._capital = np.maximum(self._capital, 1.0) * (1.0 + _BETS / self.budget * gain)

    def see_right(self, num: int, until: float) -> None:
        """See so many that were right, the last at this time."""
        if num:
            self._capital = np.maximum(self._capital * (1.0 - _BETS) ** num, 1.0 - _BETS)
            self._since[self._capital <= 1.0] = until
