"""Complaints: held against all hits, and noticed before the alarm."""

import numpy as np
import pytest

from semantic_layer.calibration.binomial import lower_bound
from semantic_layer.calibration.calibration import Budgets, Calibration, calibrate
from semantic_layer.calibration.complaints import too_many
from semantic_layer.calibration.drift import alarms
from semantic_layer.calibration.labels import Label
from semantic_layer.calibration.thresholds import Thresholds

LEAST = 8


def told(wrong: np.ndarray, *, score: float = 0.95, entry: str = "", at: int = 0) -> list[Label]:
    """Return the complaints of a stream of hits, each with the silent ones before it."""
    places = np.nonzero(wrong)[0]
    gaps = np.diff(places, prepend=-1) - 1
    return [
        Label(
            label_id=f"{at + i}", intent="general", score=score, right=False, source="feedback",
            served=True, at=float(at + i), silent=int(gap), scorer="s", entry_id=entry,
        )
        for i, gap in zip(places, gaps, strict=True)
    ]  # fmt: skip


def calibrated(labels: list[Label], budget: float = 0.02) -> Calibration:
    base = Thresholds(priors={"general": 0.92})
    return calibrate(labels, scorer="s", budgets=Budgets(budget), base=base)


def noticed(wrong: np.ndarray, budget: float) -> int:
    """Return how many wrong ones are served until complaints tighten the threshold."""
    labels = told(wrong)
    for num in range(1, len(labels) + 1):
        if calibrated(labels[:num], budget).intents["general"].source == "tightened":
            return num
    return len(labels)


@pytest.mark.parametrize("budget", [0.01, 0.02, 0.05])
def test_fewer_wrong_ones_are_served_until_a_bad_intent_is_noticed(budget: float) -> None:
    """At four times the budget from the start, against the alarm alone."""
    rng, early, late = np.random.default_rng(2), 0, 0
    for _ in range(15):
        wrong = rng.random(int(20 / budget)) < 4 * budget
        early += noticed(wrong, budget)
        at = [alarm.at for alarm in alarms(told(wrong), budget)]
        late += int(wrong[: int(min(at, default=len(wrong))) + 1].sum())
    assert early <= 0.9 * late


@pytest.mark.parametrize("budget", [0.01, 0.02, 0.05])
def test_complaints_of_half_the_budget_tighten_nothing(budget: float) -> None:
    """Of runs of a thousand hits 5% at most; at the budget itself, too."""
    rng, runs = np.random.default_rng(3), 200
    for share in (0.5, 1.0):
        num = sum(
            too_many(told(rng.random(1_000) < share * budget), 0.9, budget, least=LEAST)
            for _ in range(runs)
        )
        assert lower_bound(num, runs) <= 0.05


def test_intent_stays_above_complaints_when_what_came_after_was_right() -> None:
    """Thousands of silent hits at the raised threshold tell nothing of the lower one."""
    bad = np.zeros(70, dtype=np.bool_)
    bad[9::10] = True
    quiet = np.zeros(5_000, dtype=np.bool_)
    quiet[-1] = True
    fallen = told(bad)
    assert alarms(fallen, 0.02) == []
    assert calibrated(fallen).intents["general"].threshold > 0.95
    later = [*fallen, *told(quiet, score=0.99, at=100)]
    assert calibrated(later).intents["general"].threshold > 0.95


def test_complaints_of_what_is_not_served_any_more_prove_nothing() -> None:
    """They are below the threshold: it has been raised already."""
    wrong = np.ones(10, dtype=np.bool_)
    assert too_many(told(wrong, score=0.95), 0.9, 0.02, least=LEAST)
    assert not too_many(told(wrong, score=0.85), 0.9, 0.02, least=LEAST)


def test_entry_is_complained_of_once() -> None:
    """Ten who complain of one answer tell of one wrong answer."""
    wrong = np.ones(10, dtype=np.bool_)
    assert not too_many(told(wrong, entry="e"), 0.9, 0.02, least=LEAST)


def test_few_hits_prove_nothing() -> None:
    """Seven of seven are too few, eight are not."""
    for num, expected in ((LEAST - 1, False), (LEAST, True)):
        assert too_many(told(np.ones(num, dtype=np.bool_)), 0.9, 0.02, least=LEAST) is expected
