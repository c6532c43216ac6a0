"""What a verifier's scores of the parts of two chats come to."""

import math
from itertools import pairwise, product

import pytest

from semantic_layer.chats.context_score import NAMES, PARTS, ContextScore, Part, lacks

MODEL = ContextScore(
    "v",
    {"least": 0.2, "last": 0.5, "user": 0.4, "assistant": 0.1, "offer": 0.6},
    ((-3.0, 1.4), (-2.5, 2.1), (-2.0, 2.6)),
)
LEVELS = (0.0, 0.1, 0.5, 0.9, 1.0)


def test_nothing_is_lacking_when_every_part_is_sure() -> None:
    """From .9 on a part leaves no doubt, and one that was not asked of leaves none either."""
    assert lacks([]) == lacks([("user", 0.9), ("offer", 1.0)]) == (0.0,) * len(NAMES)
    assert MODEL.of([("user", 0.95)], "v") == MODEL.of([("last", 1.0)], "v") > 0.98


@pytest.mark.parametrize("part", PARTS)
def test_score_never_rises_when_a_part_falls(part: Part) -> None:
    """Whatever the other parts are, more doubt is never worth more."""
    for others in product(LEVELS, repeat=2):
        rest = list(zip([p for p in PARTS if p != part], others, strict=False))
        scores = [MODEL.of([*rest, (part, level)], "v") for level in LEVELS]
        assert scores == sorted(scores)
        assert all(0.0 <= score < 1.0 for score in scores)


def test_an_offer_counts_more_than_what_was_only_said() -> None:
    """A "yes" turns on what was offered, a question less on what the assistant said."""
    assert MODEL.of([("offer", 0.3)], "v") < MODEL.of([("assistant", 0.3)], "v")


def test_an_aside_only_speaks_against_a_hit() -> None:
    """What is said to other words costs nothing from .15 on, and is another thing below."""
    sure = MODEL.of([("user", 0.95)], "v")
    assert MODEL.of([("user", 0.95), ("aside", 0.2)], "v") == sure
    assert MODEL.of([("user", 0.95), ("aside", 0.1)], "v") == 0.1


def test_score_is_the_offers_own_when_it_is_rather_another() -> None:
    """However sure all else is, a "yes" to another question is another request."""
    assert MODEL.of([("last", 1.0), ("user", 1.0), ("offer", 0.4)], "v") <= 0.4


@pytest.mark.parametrize("part", PARTS)
def test_score_is_the_least_when_a_part_is_surely_another(part: Part) -> None:
    """Weights fitted on chats that mostly agree don't make up for a plain "other"."""
    sure: list[tuple[Part, float]] = [(other, 1.0) for other in PARTS if other != part]
    assert MODEL.of([*sure, (part, 0.2)], "v") <= 0.2


def test_least_score_counts_when_the_verifier_is_another() -> None:
    """Weights are worth nothing for scores that they were not fitted on."""
    assert MODEL.of([("last", 0.7), ("user", 0.4)], "another") == 0.4


def test_bundled_weights_are_complete_and_never_reward_doubt() -> None:
    """The shipped file has each weight, none below 0, and knots that rise."""
    bundled = ContextScore.bundled()
    assert set(bundled.weights) == set(NAMES)
    assert min(bundled.weights.values()) >= 0
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(bundled.knots))


@pytest.mark.parametrize(
    ("total", "log_odds"), [(-4.0, 0.4), (-3.0, 1.4), (-2.75, 1.75), (-2.0, 2.6), (0.0, 4.6)]
)
def test_score_is_read_between_and_beyond_the_knots(total: float, log_odds: float) -> None:
    """Straight lines between, as steep as the sum outside."""
    model = ContextScore("v", dict.fromkeys(NAMES, 0.0) | {"last": 4.0}, MODEL.knots)
    doubt = 1 / (1 + math.exp(-(math.log(9) + total / 4)))
    score = model.of([("last", doubt)], "v")
    assert math.log(score / (1 - score)) == pytest.approx(log_odds)
