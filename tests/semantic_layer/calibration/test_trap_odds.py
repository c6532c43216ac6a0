"""How many more traps there are than thresholds were fitted for, by near-misses alone."""

import numpy as np
import pytest

from semantic_layer.calibration.labels import Label
from semantic_layer.calibration.pooled import DATA, Expected, PooledThresholds
from semantic_layer.calibration.settled import UNPROVEN
from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.calibration.trap_odds import trap_odds
from semantic_layer.resources import load_json

EXPECTED = Expected(intercept=-2.4, slope=-1.2)
POOLED = PooledThresholds("s", ((0.008, 0.9), (0.02, 0.7), (0.05, 0.6)), EXPECTED)


def near_misses(
    factor: float, num: int, *, seed: int = 0, low: float = 0.3, stored: str = ""
) -> list[Label]:
    """Labels of traffic in which wrong ones are so many times as likely, in odds."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(low, low + 0.4, num)
    shift = np.log(factor)
    odds = [EXPECTED.log_odds(score) + shift for score in scores]
    return [
        Label(
            label_id=str(i), intent="general", score=float(score), source="gray", served=False,
            right=bool(rng.random() >= 1 / (1 + np.exp(-odd))), at=float(i),
            entry_id=stored or str(i),
        )
        for i, (score, odd) in enumerate(zip(scores, odds, strict=True))
    ]  # fmt: skip


def test_odds_are_one_when_traffic_is_as_it_was_fitted_for() -> None:
    """It is given up by mistake in one stream in twenty at most, however often one looks."""
    mistaken = [trap_odds(near_misses(1, 300, seed=s), EXPECTED, below=1) > 1 for s in range(100)]
    assert sum(mistaken) <= 10


@pytest.mark.parametrize("factor", [5.0, 20.0])
def test_odds_are_found_when_traps_are_many(factor: float) -> None:
    """A few hundred near-misses tell the factor about right."""
    found = trap_odds(near_misses(factor, 400), EXPECTED, below=1)
    assert factor / 1.6 < found < factor * 1.6


def test_few_near_misses_suffice_when_half_are_traps() -> None:
    """Forty of them, far from the hundreds that a threshold of one's own takes."""
    noticed = [trap_odds(near_misses(20, 40, seed=s), EXPECTED, below=1) > 3 for s in range(20)]
    assert sum(noticed) >= 18


@pytest.mark.parametrize(
    "labels",
    [
        near_misses(50, 6),
        near_misses(50, 60, stored="one"),
    ],
)
def test_odds_stay_when_evidence_is_little(labels: list[Label]) -> None:
    """A handful of labels, or many of one stored text, prove nothing."""
    assert trap_odds(labels, EXPECTED, below=1) == 1


def test_only_near_undecided_pairs_speak() -> None:
    """Unrelated texts are wrong in any traffic, and rules settle what is equal."""
    far = [label for label in near_misses(50, 900, low=0.01) if label.score < 0.25]
    assert len(far) > 100
    assert trap_odds(far, EXPECTED, below=1) == 1
    assert trap_odds(near_misses(20, 100, low=0.5), EXPECTED, below=0.5) == 1


def test_complaints_do_not_count() -> None:
    """Nobody complains of right answers."""
    complained = [
        Label(
            label_id=str(i), intent="general", score=0.5, source="feedback", served=True,
            right=False, at=float(i), entry_id=str(i),
        )
        for i in range(50)
    ]  # fmt: skip
    assert trap_odds(complained, EXPECTED, below=1) == 1


def test_thresholds_rise_when_traps_are_more() -> None:
    """Each is that of a smaller budget, beneath what was fitted up to what rules prove."""
    plain, doubled = (Thresholds.within(0.05, pooled=POOLED, trap_odds=x) for x in (1, 2))
    assert plain.of("general") == pytest.approx(0.6)
    assert doubled.of("general") == pytest.approx(POOLED.of(0.025))
    many = Thresholds.within(0.05, own={"code": 0.0}, pooled=POOLED, trap_odds=200)
    assert many.of("general") == many.of("unheard of") == UNPROVEN
    assert many.of("code") == 1.0


def test_bundled_thresholds_say_what_they_expect() -> None:
    """Lower scores are wrong more often, and less than half of those that may be served are."""
    bundled = PooledThresholds.matching(load_json(DATA)["fingerprint"])
    assert bundled is not None
    assert bundled.expected is not None
    assert bundled.expected.log_odds(0.8) < -3 < 0 < bundled.expected.log_odds(0.05)
