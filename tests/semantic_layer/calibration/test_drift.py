"""Drift: noticed in time, and not where there is none."""

from collections.abc import Callable

import numpy as np
import pytest

from semantic_layer.calibration.binomial import lower_bound
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


def told(wrong: np.ndarray, *, complaints_only: bool) -> list[Label]:
    """Return what people say of hits; of the right ones nothing, where they only complain."""
    labels, silent = [], 0
    for i, bad in enumerate(wrong):
        if complaints_only and not bad:
            silent += 1
            continue
        labels.append(
            Label(
                label_id=str(i), intent="general", score=0.95, right=not bad, source="feedback",
                served=True, at=float(i), silent=silent,
            )
        )  # fmt: skip
        silent = 0
    return labels


@pytest.mark.parametrize("budget", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("of", [served, lambda wrong: told(wrong, complaints_only=True)])
def test_alarm_is_rare_when_half_the_budget_is_wrong(
    of: Callable[[np.ndarray], list[Label]], budget: float
) -> None:
    """Of runs of a thousand hits 5% at most raise one, sampled or complained of."""
    rng, runs = np.random.default_rng(6), 60
    num = sum(bool(alarms(of(rng.random(1_000) < budget / 2), budget)) for _ in range(runs))
    assert lower_bound(num, runs) <= 0.05


@pytest.mark.parametrize("complaints_only", [True, False])
def test_complaints_raise_an_alarm_when_too_many_of_all_hits_are_wrong(
    complaints_only: bool,
) -> None:
    """At seven times the budget within ten complaints, whether or not people praise too."""
    wrong = np.random.default_rng(5).random(300) < 0.07
    first = alarms(told(wrong, complaints_only=complaints_only), 0.01)[0]
    assert first.by_people
    assert wrong[: int(first.at) + 1].sum() <= 10


def test_silent_hits_weigh_as_much_as_praised_ones() -> None:
    """Nobody need say that an answer was right."""
    wrong = np.random.default_rng(8).random(500) < 0.04
    silent, loud = (alarms(told(wrong, complaints_only=only), 0.01) for only in (True, False))
    assert [alarm.at for alarm in silent] == [alarm.at for alarm in loud]


def test_complaints_raise_no_alarm_when_they_are_few_of_all_hits() -> None:
    """Fifty complaints, each after a thousand hits that nobody minded."""
    labels = [
        Label(
            label_id=str(i), intent="general", score=0.95, right=False, source="feedback",
            served=True, at=float(i), silent=1_000,
        )
        for i in range(50)
    ]  # fmt: skip
    assert alarms(labels, 0.01) == []
