"""Which chances to learn are taken, and with what known probability."""

import random

import pytest

from gateway.evidence.sampling import Sampling


class Minutes:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_every_chance_is_taken_when_the_share_is_all() -> None:
    """Each weighs one."""
    sampling = Sampling(1.0, 1000, clock=Minutes())
    assert [sampling.taken() for _ in range(50)] == [1.0] * 50


@pytest.mark.parametrize(("share", "most"), [(0.0, 100), (1.0, 0)])
def test_nothing_is_taken_when_nothing_is_wanted(share: float, most: int) -> None:
    """No share, or no room."""
    sampling = Sampling(share, most, clock=Minutes())
    assert not any(sampling.taken() for _ in range(100))


def test_share_of_chances_is_taken_with_its_weight() -> None:
    """The weights sum to about the number of chances."""
    sampling = Sampling(0.1, 100_000, clock=Minutes(), draw=random.Random(1).random)
    weights = [weight for _ in range(5000) if (weight := sampling.taken())]
    assert all(weight == pytest.approx(10) for weight in weights)
    assert sum(weights) == pytest.approx(5000, rel=0.15)


def test_rate_stays_near_its_limit_when_traffic_is_heavy() -> None:
    """The second busy minute takes about the limit, and the weights still sum to the chances."""
    clock = Minutes()
    sampling = Sampling(1.0, 50, clock=clock, draw=random.Random(2).random)
    for minute in range(4):
        clock.now = 60.0 * minute
        weights = [weight for _ in range(2000) if (weight := sampling.taken())]
        assert len(weights) <= 100
    assert len(weights) == pytest.approx(50, rel=0.5)
    assert sum(weights) == pytest.approx(2000, rel=0.5)
    clock.now = 60.0 * 10
    assert sampling.taken() == 1.0
