"""Default thresholds: from a budget, by what was fitted for one scorer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_layer.calibration.pooled import DATA, PooledThresholds
from semantic_layer.calibration.thresholds import PRIORS, Thresholds
from semantic_layer.resources import load_json

POOLED = PooledThresholds("s", ((0.008, 0.9), (0.02, 0.7), (0.05, 0.6)))


def test_threshold_is_the_fitted_one_when_the_budget_is_a_knot() -> None:
    """A proven budget gets its own threshold, one between two a threshold between theirs."""
    assert [POOLED.of(b) for b in (0.008, 0.02, 0.05)] == pytest.approx([0.9, 0.7, 0.6])
    assert 0.7 < POOLED.of(0.014) < 0.9


def test_threshold_is_never_looser_than_proven_when_the_budget_is_beyond() -> None:
    """A budget above all knots gets the last one's threshold; nothing is extrapolated."""
    assert POOLED.of(0.9) == pytest.approx(0.6)


@given(st.sampled_from(sorted(PRIORS)), st.floats(0, 1), st.floats(0, 1))
def test_smaller_budget_is_never_more_lenient_when_fitted(
    intent: str, one: float, other: float
) -> None:
    """Thresholds fall as the budget grows, stay in 0..1, and 0 admits equal texts only."""
    small, large = sorted((one, other))
    strict, lenient = (Thresholds.within(b, pooled=POOLED).of(intent) for b in (small, large))
    assert 0 <= lenient <= strict <= 1
    assert Thresholds.within(0, pooled=POOLED).of(intent) == 1.0


def test_intents_keep_their_order_when_fitted() -> None:
    """What is stricter by its prior is stricter at every budget."""
    for budget in (0.005, 0.01, 0.05):
        fitted = Thresholds.within(budget, pooled=POOLED)
        order = sorted(PRIORS, key=lambda intent: PRIORS[intent])
        assert [fitted.of(i) for i in order] == sorted(fitted.of(i) for i in order)
        assert fitted.of("general") == pytest.approx(POOLED.of(budget))


def test_fitted_thresholds_are_left_out_when_scores_are_another_scorers() -> None:
    """Nothing was proven of other scores, so their priors stay as they are."""
    bundled = PooledThresholds.matching(load_json(DATA)["fingerprint"])
    assert bundled is not None
    assert PooledThresholds.matching("another") is None
    assert all(b0 < b1 and t0 > t1 for (b0, t0), (b1, t1) in zip(
        bundled.knots, bundled.knots[1:], strict=False
    ))  # fmt: skip
