"""What labels say about serving at a threshold: independent draws out of dependent labels. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from semantic_layer.calibration.betting import Array, Draws
from semantic_layer.calibration.labels import Label


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Labels as arrays ``(num_labels,)``.

    ``cluster`` numbers what is not independent: labels of one entry are right or wrong together.
    ``worth`` (0..1) is how much of a label each one is.
    """

    score: Array
    wrong: Array
    weight: Array
    cluster: npt.NDArray[np.int64]
    worth: Array

    @classmethod
    def of(
        cls,
        labels: Sequence[Label],
        score: Callable[[Label], float] = lambda label: label.score,
        worth: Callable[[Label], float] = lambda _: 1.0,
    ) -> Self:
        """Return the sample that labels make, with scores and worths as given."""
        names = [_cluster(label) for label in labels]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return cls(
            score=np.array([score(label) for label in labels], dtype=np.float64),
            wrong=np.array([not label.right for label in labels], dtype=np.float64),
            weight=np.array([label.weight for label in labels], dtype=np.float64),
            cluster=np.array([numbers[name] for name in names], dtype=np.int64),
            worth=np.array([worth(label) for label in labels], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.score)

    def served_at(self, threshold: float) -> "Sample":
        """Return the labels of pairs that would be served."""
        return self.only(self.score >= threshold)

    def only(self, kept: npt.NDArray[np.bool_]) -> "Sample":
        """Return some of the labels."""
        return Sample(
            self.score[kept],
            self.wrong[kept],
            self.weight[kept],
            self.cluster[kept],
            self.worth[kept],
        )

    def draws(self) -> Draws:
        """Return one draw per cluster: its mean weight, and the share of it that is wrong.

        So an entry speaks once, however many of its labels there are.
        """
        num = np.bincount(self.cluster)
        weight = np.bincount(self.cluster, self.weight)
        wrong = np.bincount(self.cluster, self.weight * self.wrong)
        worth = np.bincount(self.cluster, self.worth)
        there = num > 0
        num, weight = num[there], weight[there]
        return Draws.of(weight / num, wrong[there] / weight, worth[there] / num)

    @property
    def share(self) -> float:
        """The wrong share of traffic, every label counted, 0 when there is none."""
        total = float(self.weight.sum())
        return float(self.weight @ self.wrong) / total if total else 0.0


def _cluster(label: Label) -> tuple[str, ...]:
    entry = label.entry_id or label.stored_text
    return (label.tenant, entry) if entry else (label.label_id,)
