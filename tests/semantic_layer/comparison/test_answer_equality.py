"""Answers compared by their words: same, different, or honestly undecided."""

import pytest

from semantic_layer.comparison.answer_equality import by_score, compare_answers

SAME = [
    ("Paris.", "Paris.", "exact"),
    ("Paris", "paris.", "normalised"),
    ("It is  12 km.", "It is 12 km", "normalised"),
    ("法国的首都是巴黎。", "法国的首都是巴黎", "normalised"),
    ("Ｐａｒｉｓ", "Paris", "normalised"),
]
DIFFERENT = [
    ("Yes.", "No."),
    ("Yes, it is safe to eat.", "No, it is not safe to eat."),
    ("是的。", "不是。"),
    ("The hotel has 12 rooms.", "The hotel has 13 rooms."),
    ("It opens at 7am.", "It opens at 7pm."),
    ("3.14", "314"),
    ("-5", "5"),
    ("It is −5 °C.", "It is 5 °C."),
    ("10.5", "10 5"),
    ("It is safe.", "It is not safe."),
    ("Turn it on.", "Turn it off."),
    ("The capital is Berlin.", "The capital is Paris."),
    ("Use `ls -l`", "Use `ls -L`"),
]
UNTOLD = [
    ("", "Paris."),
    ("A is larger than B.", "B is larger than A."),
    ("Paris.", "The capital of France is Paris."),
    ("首都是柏林。", "首都是巴黎。"),
    ("x = 1", "x - 1"),
    ("One tip is to sleep. " * 80, "One tip is to walk. " * 80),
]


@pytest.mark.parametrize(("one", "other", "method"), SAME)
def test_answers_are_the_same_when_they_are_typed_alike(one: str, other: str, method: str) -> None:
    """Case, width, spaces and final marks do not matter in words."""
    assert compare_answers(one, other).same is True
    assert compare_answers(other, one).same is True
    assert compare_answers(one, other).method == method


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_short_answers_differ_when_a_number_name_or_denial_does(one: str, other: str) -> None:
    """In both orders, with how it was told."""
    for pair in ((one, other), (other, one)):
        assert compare_answers(*pair).same is False
        assert compare_answers(*pair).method


@pytest.mark.parametrize(("one", "other"), UNTOLD)
def test_nothing_is_decided_when_words_do_not_tell(one: str, other: str) -> None:
    """No label is better than a wrong one."""
    for pair in ((one, other), (other, one)):
        assert compare_answers(*pair).same is None


def test_long_answers_are_not_told_apart_by_one_number() -> None:
    """They vary in much that does not matter."""
    text = "There are many good reasons to walk every day, as doctors say. " * 6
    found = compare_answers(f"{text} Here are 5 tips.", f"{text} Here are 7 tips.")
    assert found.same is None
    assert found.method == "guards: numbers"


@pytest.mark.parametrize(("score", "same"), [(0.99, True), (0.95, True), (0.9, None), (0.0, None)])
def test_score_decides_only_when_it_is_high(score: float, same: bool | None) -> None:
    """A low score is no proof of another answer."""
    assert by_score(score).same is same
