"""Bounds that hold at any time and under any weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semantic_layer.calibration.betting import Draws, log_wealth_below, lower_bound, upper_bound
from semantic_layer.calibration.binomial import upper_bound as exact_upper_bound


def counted(wrong: int, num: int, weight: float = 1.0) -> Draws:
    return Draws.of(np.full(num, weight), np.arange(num) < wrong, np.ones(num))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 20), st.integers(1, 600), st.floats(1, 50))
def test_bounds_hold_the_share_whatever_the_common_weight(
    wrong: int, more: int, weight: float
) -> None:
    """Lower, seen and upper share are in order; a weight that all share changes nothing."""
    draws = counted(wrong, wrong + more, weight)
    assert lower_bound(draws) <= draws.share <= upper_bound(draws) <= 1
    assert upper_bound(draws) == pytest.approx(upper_bound(counted(wrong, wrong + more)), rel=1e-6)


@pytest.mark.parametrize(("wrong", "num"), [(0, 400), (1, 700), (5, 1_500), (20, 3_000)])
def test_bound_that_holds_always_is_little_above_the_one_that_holds_once(
    wrong: int, num: int
) -> None:
    """Looking as often as one likes costs less than half as much again."""
    exact = exact_upper_bound(wrong, num)
    assert exact < upper_bound(counted(wrong, num)) < 1.5 * exact


def test_nothing_is_proven_when_there_are_no_draws() -> None:
    """No label, no knowledge."""
    nothing = counted(0, 0)
    assert (lower_bound(nothing), nothing.share, upper_bound(nothing)) == (0.0, 0.0, 1.0)


def test_heavy_wrong_draw_outweighs_when_weights_differ() -> None:
    """One wrong near-miss that stands for fifty is not one among five hundred."""
    light = Draws.of(np.ones(500), np.zeros(500), np.ones(500))
    heavy = Draws.of(np.append(np.ones(500), 50.0), np.append(np.zeros(500), 1.0), np.ones(501))
    assert upper_bound(light) < 0.01
    assert upper_bound(heavy) > heavy.share > 0.09


def test_bound_holds_at_all_times_when_labels_come_one_by_one() -> None:
    """Of 300 streams watched after every label, at most one in twenty ever breaks its promise."""
    rng = np.random.default_rng(5)
    broken = 0
    for _ in range(300):
        wrong = rng.random(1_200) < 0.02
        counts = np.cumsum(wrong)
        broken += any(
            log_wealth_below(counted(int(counts[n - 1]), n), 0.02) >= np.log(20)
            for n in range(50, 1_200, 25)
        )
    assert broken / 300 <= 0.05
