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
    ("Ticket #4821: it costs £20.", "Ticket #5930: it costs £25."),
    ("It closed in 1912 [2026-11-30 12:01:55]", "It closed in 1921 [2026-11-30 14:22:01]"),
    ("年费是200元。", "年费是300元。"),
]
CALLS = [
    ("ANSWER[3fa9c01b7d]How do I boil an egg?", "ANSWER[91ce7742ab]How should I boil an egg?"),
    ("ANSWER[3901470281]怎么煮鸡蛋？", "ANSWER[91ce7742ab]鸡蛋怎么煮？"),
    ("Paris. (ref 48213)", "Paris. (ref 99121)"),
    ("Paris. Request id: req_8fk2Lq09", "Paris. Request id: req_77aPq1zz"),
    ("It is Paris. Reference number 118273.", "It is Paris. Reference number 118291."),
    ("Ticket #4821: Reset it under Settings.", "Ticket #5930: Reset it under Settings."),
    ("Generated at 2026-11-30T12:01:55Z: Paris.", "Generated at 2026-11-30T14:22:01Z: Paris."),
    ("Paris [2026-11-30 12:01:55]", "Paris [2026-11-30 14:22:01]"),
    ("See https://a.example/x?token=ab12cd34 .", "See https://a.example/x?token=99zz88yy ."),
    ("会话编号：A82K19。首都是巴黎。", "会话编号：B11Z70。首都是巴黎。"),
    ("您的工单号是20261130，请在设置里重置。", "您的工单号是20261145，请在设置里重置。"),
    ("550e8400-e29b-41d4-a716-446655440000: done", "6fa459ea-ee8a-3ca4-894e-db77e160355e: done"),
    ("SHA-1: 0123456789abcdef0123", "SHA-1: fedcba98765432100123"),
]
REWORDED = [
    ("Boil the eggs for 10 minutes.", "Put the eggs into boiling water until they are firm."),
    ("Boil the eggs for 10 minutes, then cool.", "Cook the eggs for 9 to 12 minutes in water."),
    ("Paris", "It's Paris, France's largest city with 2.1 million people."),
    ("No, it isn't safe.", "It is not safe to do that."),
    ("Use tea, honey and lemon.", "Try honey, ginger and plenty of water."),
    ("Water boils at 100 °C.", "At sea level water boils at 100 degrees Celsius (212 °F)."),
    ("水在100度沸腾。", "在标准大气压下，水的沸点是100摄氏度，即212华氏度。"),
    ("可以，但要注意保暖。", "可以的，不过不要着凉。"),
    ("It was written by Jane Austen.", "Jane Austen is the author; it appeared in 1813."),
    ("Use `sorted(x)`.", "Call sorted(x), or x.sort() in place."),
    ("You can't do it without a password.", "A password is needed."),
    ("是的，需要提前预约。", "需要。请提前一天预约。"),
    ("Try Thai Palace or Green Garden.", "I recommend Lotus House near the station."),
    ("Call +44 20 7946 0000.", "Ring our support on the number in the app."),
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


@pytest.mark.parametrize(("one", "other"), CALLS)
def test_nothing_is_decided_when_only_marks_of_calls_differ(one: str, other: str) -> None:
    """A new id in every answer is no sign of another question; nor is its answer the same."""
    for pair in ((one, other), (other, one)):
        assert compare_answers(*pair).same is None


@pytest.mark.parametrize(("one", "other"), REWORDED)
def test_nothing_is_decided_when_a_model_says_it_in_other_words(one: str, other: str) -> None:
    """At a temperature above 0 it tells more, or less, or in other words."""
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
