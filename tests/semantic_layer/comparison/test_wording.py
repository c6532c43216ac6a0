"""In how many places two texts are worded otherwise, and what rules' word is worth then."""

import pytest

from semantic_layer.calibration.settled import SETTLED
from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.wording import added_phrase, num_rewordings
from semantic_layer.models.scorer import Scorer
from semantic_layer.text.analysis import analyse


@pytest.mark.parametrize(
    ("one", "other", "places"),
    [
        ("What's the capital of Peru?", "what is the capital of peru", 0),
        ("How do I back-up a phone?", "Hi, how do I back up a phone please?", 0),
        ("怎麼煮雞蛋？", "怎么煮鸡蛋?", 0),
        ("How do I boil an egg?", "How can I boil an egg?", 1),
        ("怎么煮鸡蛋？", "怎么煮鸡蛋啊？", 1),
        ("如何煮鸡蛋？", "怎么煮鸡蛋", 1),
        ("How do I boil an egg?", "How can I boil the egg?", 2),
        ("手机如何加密？", "手机怎么加密呢", 2),
        ("What is it?", "", 1),
    ],
)
def test_places_are_counted_when_words_differ(one: str, other: str, places: int) -> None:
    """Typing is no wording; a run of other words is one place, whichever text has it."""
    for pair in ((one, other), (other, one)):
        assert num_rewordings(compare(*map(analyse, pair))) == places


@pytest.mark.parametrize(
    ("one", "other", "places"),
    [
        ("What's the capital of Peru?", "what is the capital of peru", 0),
        ("How do I boil an egg?", "How can I boil an egg?", 1),
        ("手机如何加密？", "手机怎么加密呢", 2),
        ("怎么煮鸡蛋？", "鸡蛋怎么煮？", 2),
    ],
)
def test_rules_word_is_worth_less_when_more_is_worded_otherwise(
    one: str, other: str, places: int
) -> None:
    """So each budget serves as many places as were measured to keep it."""
    assert (
        Scorer.conservative().score(1.0, compare(analyse(one), analyse(other))) == SETTLED[places]
    )
    assert SETTLED[0] > SETTLED[1] > SETTLED[2]


@pytest.mark.parametrize(
    ("one", "other", "phrase"),
    [
        ("Can I burn leaves?", "Can I burn leaves during a drought?", "drought"),
        ("Can I burn leaves?", "Can I burn leaves in the world?", None),
        ("Can I burn leaves?", "Can you burn leaves with a permit?", None),
        ("Where is the toilet?", "Sorry to bother you, where is the toilet?", None),
        ("可以烧树叶吗", "干旱时可以烧树叶吗", None),
    ],
)
def test_phrase_that_narrows_is_named_when_all_else_is_the_same(
    one: str, other: str, phrase: str | None
) -> None:
    """A question of some is not one of all; a verifier takes them for the same too often."""
    for pair in ((one, other), (other, one)):
        assert added_phrase(compare(*map(analyse, pair))) == phrase
