"""Drift: noticed in time, and not where there is none."""

import numpy as np
import pytest

from semantic_layer.calibration.drift import alarms
from semantic_layer.calibration.labels import Label


def served(wrong: np.ndarray, weight: float = 1.0) -> list[Label]:
    return [
        Label(
            label_id=str(i), intent="general", score=0.95, right=not bad, source="shadow",
            served=True, at=float(i), weight=weight,
        )
        for i, bad in enumerate(wrong)
    ]  # fmt: skip


@pytest.mark.parametrize("budget", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("after", [3.0, 10.0, 20.0])
def test_drift_is_noticed_before_the_wrong_share_passes_twice_the_budget(
    budget: float, after: float
) -> None:
    """In 95% of streams, whether the new wrong share is three or twenty times the budget."""
    rng = np.random.default_rng(3)
    before, num = int(4 / budget), 25
    late = 0
    for _ in range(num):
        healthy = rng.random(before) < 0.3 * budget
        broken = rng.random(int(20 / budget)) < after * budget
        wrong = np.concatenate((healthy, broken))
        share = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
        passed = np.nonzero((share > 2 * budget) & (np.arange(len(wrong)) >= before))[0]
        noticed = [alarm.at for alarm in alarms(served(wrong), budget)]
        late += min(noticed, default=np.inf) > min(passed, default=len(wrong))
    assert late <= 1


def test_alarms_are_rare_when_the_budget_is_kept() -> None:
    """At half the budget, less than one in 5,000 labels, whatever they weigh."""
    wrong = np.random.default_rng(4).random(20_000) < 0.005
    assert len(alarms(served(wrong, weight=20), 0.01)) <= 4


def test_alarm_names_the_time_since_which_it_is_so() -> None:
    """The change is found, not only noticed."""
    wrong = np.arange(500) >= 400
    first = alarms(served(wrong), 0.01)[0]
    assert 395 <= first.since <= 401
    assert first.at < 410


def test_near_misses_raise_no_alarm() -> None:
    """A pair that nobody was served did no harm."""
    labels = [
        Label(
            label_id=str(i), intent="general", score=0.8, right=False, source="gray",
            served=False, at=float(i),
        )
        for i in range(100)
    ]  # fmt: skip
    assert alarms(labels, 0.01) == []
