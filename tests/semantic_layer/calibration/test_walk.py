"""The walk from strict to loose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semantic_layer.calibration.sample import Sample
from semantic_layer.calibration.walk import grid, lowest_within, proves_always, proves_once


def sample(scores: list[float], wrong: list[bool], weight: float = 1.0) -> Sample:
    return Sample(
        np.array(scores), np.array(wrong, dtype=float), np.full(len(scores), weight),
        np.arange(len(scores)), np.ones(len(scores)),
    )  # fmt: skip


def test_threshold_is_where_wrong_ones_begin_when_there_is_much_evidence() -> None:
    """2,000 right ones above 0.9, wrong ones below."""
    scores = [*np.linspace(0.9, 1, 2_000), *np.linspace(0.5, 0.9, 200)]
    found = lowest_within(sample(scores, [False] * 2_000 + [True] * 200), 0.01)
    assert found is not None
    assert 0.88 < found <= 0.92


def test_nothing_is_found_when_labels_are_few() -> None:
    """Two hundred right ones don't prove one percent."""
    few = sample(list(np.linspace(0.9, 1, 200)), [False] * 200)
    assert lowest_within(few, 0.01) is None
    assert lowest_within(few, 0.05) is not None


def test_threshold_never_leaves_what_was_labelled() -> None:
    """Nothing is known of scores that nobody looked at, however many labels there are."""
    served_only = sample(list(np.linspace(0.95, 1, 5_000)), [False] * 5_000)
    assert lowest_within(served_only, 0.05) == pytest.approx(0.95)


def test_unlucky_label_at_the_top_is_not_the_end_when_evidence_is_ample() -> None:
    """A walk that ended early begins again further down."""
    scores = list(np.linspace(0.8, 1, 6_000))[::-1]
    wrong = [i in {10, 20, 30} for i in range(6_000)]
    found = lowest_within(sample(scores, wrong), 0.01)
    assert found is not None
    assert found < 0.85


def test_labels_read_once_need_be_fewer() -> None:
    """Offline the exact bound counts: 299 right ones are not enough for looking always."""
    labels = sample(list(np.linspace(0.9, 1, 320)), [False] * 320)
    assert lowest_within(labels, 0.01, proves=proves_always) is None
    assert lowest_within(labels, 0.01, proves=proves_once) is not None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0.5, 1), st.booleans()), max_size=60), st.floats(0, 0.5))
def test_what_would_be_served_was_within_the_budget(
    rows: list[tuple[float, bool]], budget: float
) -> None:
    """Whatever the labels, no threshold is given at which more were seen to be wrong."""
    labels = sample([score for score, _ in rows], [bad for _, bad in rows])
    found = lowest_within(labels, budget)
    if found is not None:
        assert labels.served_at(found).share <= budget
        assert len(labels.served_at(found))


def test_grid_runs_from_certainty_down() -> None:
    """Strict to loose, each threshold once."""
    steps = grid()
    assert steps[0] == 1
    assert (np.diff(steps) < 0).all()
