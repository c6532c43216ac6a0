"""Labels of simulated traffic whose truth is known."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from semantic_layer.calibration.labels import Label

Array = npt.NDArray[np.float64]
SCORER = "s"


@dataclass(frozen=True)
class Traffic:
    """Pairs with scores in 0.5..1; a pair's chance to be wrong is ``slope`` times 1 - score.

    ``entries`` is how many entries the pairs lead to, the first ones far more often; pairs of an
    entry are wrong together, but for a share of ``loose`` pairs. None is one entry per pair.
    """

    rng: np.random.Generator
    slope: float = 0.1
    entries: int | None = None
    loose: float = 0.3
    intent: str = "general"
    scores: Array = field(init=False)

    def labels(self, num: int, *, shadow: float = 1.0, gray: float = 1.0) -> list[Label]:
        """Return the labels of ``num`` pairs, of which some are sampled: above 0.92, and below."""
        rng = self.rng
        score = _scores(rng, num)
        entry, luck = self._entries(num)
        wrong = luck < self.slope * (1 - score)
        served = score >= 0.92
        share = np.where(served, shadow, gray)
        sampled = np.nonzero(rng.random(num) < share)[0]
        return [
            Label(
                label_id=str(i),
                intent=self.intent,
                score=float(score[i]),
                right=not wrong[i],
                source="shadow" if served[i] else "gray",
                served=bool(served[i]),
                at=float(i),
                weight=1 / float(share[i]),
                entry_id=f"{self.intent}-{entry[i]}",
                text=f"text {i}",
                scorer=SCORER,
            )
            for i in sampled
        ]

    def wrong_share(self, threshold: float) -> float:
        """Return the true wrong share of all that scores at least ``threshold``."""
        worst = 1 - max(threshold, 0.5)
        return self.slope * worst / 3  # the mean of 1 - score where its root is uniform

    def _entries(self, num: int) -> tuple[npt.NDArray[np.int64], Array]:
        if self.entries is None:
            return np.arange(num), self.rng.random(num)
        entry = self.rng.zipf(1.5, num) % self.entries
        luck = self.rng.random(self.entries)[entry]
        loose = self.rng.random(num) < self.loose
        return entry, np.where(loose, self.rng.random(num), luck)


def _scores(rng: np.random.Generator, num: int) -> Array:
    return 1 - 0.5 * rng.random(num) ** 2
