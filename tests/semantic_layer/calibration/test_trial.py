"""Trials of two thresholds: who gets which, and when a difference is proven."""

import math
import random
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.calibration.trial import Tally, Trial, arm_of, judge_trial

KEYS = [sha256(str(at).encode()).hexdigest() for at in range(2000)]


def verdict(one: Tally, other: Tally, low: float = 0.0, high: float = 0.005) -> str:
    return judge_trial(one, other, wrong_low=low, wrong_high=high, budget=0.01, most=5000)


def test_keys_are_halved_when_a_trial_runs() -> None:
    """The same key always gets the same arm; another trial makes other halves."""
    first = [arm_of("one", key) for key in KEYS]
    assert first == [arm_of("one", key) for key in KEYS]
    second = [arm_of("two", key) for key in KEYS]
    assert first.count("b") == pytest.approx(1000, abs=120)
    agree = sum(a == b for a, b in zip(first, second, strict=True))
    assert agree == pytest.approx(1000, abs=120)


def test_trial_decides_the_threshold_of_its_intent_alone() -> None:
    """What is in force is arm a's where it has none of its own; an intent that is off has none."""
    thresholds = Thresholds(trials={"code": Trial("t", None, 0.5)})
    tried = {thresholds.tried_on("code", key) for key in KEYS}
    assert tried == {("a", None), ("b", 0.5)}
    assert thresholds.tried_on("factual", KEYS[0]) is None
    off = Thresholds(trials={"code": Trial("t", None, 0.5)}, off=frozenset({"code"}))
    assert off.tried_on("code", KEYS[0]) is None


@given(st.integers(0, 3000), st.data())
def test_interval_holds_the_seen_share(num: int, data: st.DataObject) -> None:
    """It lies in 0..1 and is narrower the more was seen."""
    hits = data.draw(st.integers(0, num))
    tally = Tally(num, hits)
    low, high = tally.interval()
    assert 0 <= low <= (tally.share or 0) <= high <= 1 or num == 0
    low_more, high_more = Tally(num * 10, hits * 10).interval()
    assert high_more - low_more <= high - low + 1e-9


def test_interval_misses_the_truth_seldom_however_often_one_looks() -> None:
    """Over 2000 streams watched at every step, one in twenty at most ever leaves the truth out."""
    rng, truth, missed = random.Random(7), 0.3, 0
    for _ in range(2000):
        hits = 0
        for num in range(1, 201):
            hits += rng.random() < truth
            if Tally(num, hits)._log_wealth(truth) >= math.log(20):
                missed += 1
                break
    assert missed <= 100
    low, high = Tally(200, 60).interval()
    assert Tally(200, 60)._log_wealth(low) == pytest.approx(math.log(20), abs=1e-6)
    assert Tally(200, 60)._log_wealth(high) == pytest.approx(math.log(20), abs=1e-6)


@pytest.mark.parametrize(
    ("one", "other", "bounds", "expected"),
    [
        (Tally(), Tally(), (0.0, 1.0), "running"),
        (Tally(1000, 200), Tally(1000, 210), (0.0, 0.005), "running"),
        (Tally(1000, 200), Tally(1000, 400), (0.0, 0.005), "better"),
        (Tally(1000, 200), Tally(1000, 400), (0.0, 0.05), "running"),
        (Tally(1000, 400), Tally(1000, 200), (0.0, 0.005), "worse"),
        (Tally(10, 1), Tally(10, 2), (0.02, 0.5), "wrong"),
        (Tally(5000, 1000), Tally(5000, 1000), (0.0, 0.005), "no difference"),
    ],
)
def test_trial_is_decided_when_the_intervals_part(
    one: Tally, other: Tally, bounds: tuple[float, float], expected: str
) -> None:
    """More hits count only within the budget; a proven wrong share ends it at once."""
    assert verdict(one, other, *bounds) == expected
