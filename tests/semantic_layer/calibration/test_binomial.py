"""Exact bounds of a counted share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from semantic_layer.calibration.binomial import interval, lower_bound, upper_bound


@given(st.integers(0, 400), st.integers(1, 400), st.sampled_from([0.005, 0.025, 0.05]))
def test_bounds_are_the_beta_quantiles(wrong: int, more: int, alpha: float) -> None:
    """The same numbers as a library of statistics gives."""
    num = wrong + more
    assert upper_bound(wrong, num, alpha) == pytest.approx(
        beta.ppf(1 - alpha, wrong + 1, more), rel=1e-6
    )
    expected = float(beta.ppf(alpha, wrong, more + 1)) if wrong else 0.0
    assert lower_bound(wrong, num, alpha) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_bounds_say_nothing_when_nothing_was_counted() -> None:
    """Without labels a share may be anything."""
    assert interval(0, 0) == (0.0, 1.0)


def test_bound_stays_exact_when_there_are_many() -> None:
    """No sum runs over or out of digits."""
    assert upper_bound(1_000, 1_000_000) == pytest.approx(float(beta.ppf(0.95, 1_001, 999_000)))


def test_rule_of_three_holds_when_none_is_wrong() -> None:
    """299 right ones and none wrong prove 1%, 298 do not."""
    assert upper_bound(0, 299) <= 0.01 < upper_bound(0, 298)
