"""Thresholds: which one counts, and what a budget does to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_layer.calibration.settled import SETTLED, UNPROVEN, settled_from
from semantic_layer.calibration.thresholds import (
    PRIOR_BUDGET,
    PRIORS,
    Thresholds,
)


@pytest.mark.parametrize(("intent", "prior"), PRIORS.items())
def test_prior_holds_when_nothing_else_is_known(intent: str, prior: float) -> None:
    """Each intent begins at its prior."""
    assert Thresholds().of(intent) == prior
    assert Thresholds.within(PRIOR_BUDGET).of(intent) == pytest.approx(prior)


def test_closest_evidence_counts_when_there_is_more() -> None:
    """What a person set beats what was measured beats the prior; unknown intents are strict."""
    thresholds = Thresholds(calibrated={"code": 0.8, "factual": 0.9}, manual={"code": 0.7})
    assert (thresholds.of("code"), thresholds.of("factual")) == (0.7, 0.9)
    assert thresholds.of("general") == PRIORS["general"]
    assert thresholds.of("unheard-of") == 0.95


@given(st.sampled_from(sorted(PRIORS)), st.floats(0, 1), st.floats(0, 1))
def test_caller_only_ever_makes_it_stricter(intent: str, asked: float, manual: float) -> None:
    """No request lowers an operator's threshold."""
    thresholds = Thresholds(manual={intent: manual})
    assert thresholds.of(intent, asked) == max(asked, manual)


@given(st.sampled_from(sorted(PRIORS)), st.floats(0, 1), st.floats(0, 1))
def test_smaller_budget_is_never_more_lenient(intent: str, one: float, other: float) -> None:
    """Thresholds fall as the budget grows, and stay in 0..1."""
    small, large = sorted((one, other))
    strict, lenient = (Thresholds.within(b).of(intent) for b in (small, large))
    assert 0 <= lenient <= strict <= 1


def test_equal_texts_only_when_the_budget_is_nothing() -> None:
    """A budget of 0 asks for certainty."""
    assert {Thresholds.within(0).of(intent) for intent in (*PRIORS, "other")} == {1.0}


def test_rules_are_taken_at_their_word_when_the_budget_allows() -> None:
    """Two places worded otherwise pass at 2%, one at 1%, none under it, and at 0 equal texts."""
    scores = [settled_from(budget) for budget in (0.05, 0.02, 0.0199, 0.01, 0.001, 0.0)]
    assert scores == [UNPROVEN, UNPROVEN, SETTLED[1], SETTLED[1], SETTLED[0], 1.0]
    own = Thresholds.unproven(0.02, {"code": 0.01, "creative": 0.0})
    assert [own.of(name) for name in ("general", "code", "creative")] == [UNPROVEN, SETTLED[1], 1]


def test_intent_has_its_own_prior_when_it_has_its_own_budget() -> None:
    """A looser budget moves one intent's threshold and no other's."""
    thresholds = Thresholds.within(0.01, {"code": 0.02})
    assert thresholds.of("code") == pytest.approx(1 - 2 * (1 - PRIORS["code"]))
    assert thresholds.of("factual") == pytest.approx(PRIORS["factual"])
