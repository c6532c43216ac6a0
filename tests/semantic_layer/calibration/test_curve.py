"""Curves over labels and replays of decisions."""

import numpy as np
import pytest

from semantic_layer.calibration.curve import Recorded, replay, threshold_curve
from tests.semantic_layer.labelled_traffic import SCORER, Traffic


def test_curve_tells_what_each_threshold_would_serve() -> None:
    """The looser, the more is served and the more of it is wrong; the truth is within bounds."""
    source = Traffic(np.random.default_rng(2), slope=0.4)
    points = threshold_curve(source.labels(4_000), scorer=SCORER, thresholds=[0.5, 0.8, 0.95])
    assert [point.threshold for point in points] == [0.95, 0.8, 0.5]
    assert points[-1].served_share == pytest.approx(1)
    assert points[0].served_share == pytest.approx(0.1**0.5, abs=0.03)
    for point in points:
        assert point.low <= source.wrong_share(point.threshold) <= point.high
        assert point.low <= point.wrong_share <= point.high


def test_curve_undoes_the_sampling_when_near_misses_were_sampled_less() -> None:
    """Shares are of traffic, not of labels."""
    source = Traffic(np.random.default_rng(2))
    (point,) = threshold_curve(
        source.labels(20_000, shadow=0.5, gray=0.05), scorer=SCORER, thresholds=[0.92]
    )
    assert point.served_share == pytest.approx(0.16**0.5, abs=0.03)


def test_curve_is_flat_when_nothing_was_labelled() -> None:
    """No labels: nothing served, anything possible."""
    points = threshold_curve([], scorer=SCORER)
    assert len(points) > 20
    assert {(p.served_share, p.low, p.high, p.num) for p in points} == {(0, 0, 1, 0)}


def test_replay_names_what_would_have_changed() -> None:
    """Hits gained and lost by their requests, with what is known of them."""
    past = [
        Recorded("a", 0.97, served=True, right=True),
        Recorded("b", 0.93, served=True, right=False),
        Recorded("c", 0.90, served=False),
        Recorded("d", 0.96, served=False, right=False),
    ]
    stricter = replay(past, 0.95)
    assert (stricter.new_hits, stricter.lost_hits) == (("d",), ("b",))
    assert (stricter.known_wrong_new, stricter.known_wrong_lost) == (1, 1)
    assert (stricter.hits_before, stricter.hits_after) == (2, 2)
    looser = replay(past, 0.5)
    assert looser.new_hits == ("c", "d")
    assert looser.lost_hits == ()
