"""Questions on a fact of somebody who is named in them, and questions that are not. Own texts."""

import pytest

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.dependence import dependence_of
from semantic_layer.chats.histories import fit_of
from semantic_layer.chats.own_matter import asks_by_name

BEFORE = (
    (("user", "my locker doesnt lock any more"), ("assistant", "Sorry, let me reset it for you.")),
    (("user", "there was no soap in the showers today"), ("assistant", "Thanks, noted.")),
)


@pytest.mark.parametrize(
    "text",
    [
        "what's the minimum age to use the Harrow Lane sauna",
        "What time does Harrow Lane close on Saturdays?",
        "ok. what are the winter opening hours at the Marsden tennis courts?",
        "how long does a Pollux router delivery take?",
        "is there a charge for using a Pollux card abroad?",
    ],
)
def test_history_does_not_matter_when_a_fact_of_a_named_one_is_asked_for(text: str) -> None:
    """Whatever either user complained of before."""
    assert asks_by_name(text)
    assert fit_of(Chat(text, BEFORE[0]), Chat(text, BEFORE[1])).score == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "Is there a shuttle bus to Heathrow?",
        "when does the pool open at noon",
        "How much do I still owe Harrow Lane?",
        "what should one order at the Golden Fig",
        "Which is the best dish at Golden Fig?",
        "is the sauna open, Harrow Lane people?",
        "tell me a joke about Harrow Lane",
    ],
)
def test_message_that_leaves_something_open_asks_for_nobodys_own(text: str) -> None:
    """A thing that is only pointed at, the user himself, advice, or merely where to."""
    assert not asks_by_name(text)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("I'm a member at Harrow Lane", "what's the price of the Harrow Lane sauna?"),
        ("I booked the small room", "does Harrow Lane include towels?"),
    ],
)
def test_what_a_user_is_or_chose_still_matters(told: str, text: str) -> None:
    """A fact may be another for a member, and a yes or no for another choice."""
    history = (("user", told), ("assistant", "Good, I can see that here, thank you."))
    assert fit_of(Chat(text, history), Chat(text, BEFORE[1])).score == 0.0


@pytest.mark.parametrize(
    "text", ["你们健身房最小要几岁才能进", "你们店退货的运费谁出", "跨行转账手续费多少"]
)
def test_chinese_question_without_a_mark_asks_for_a_providers_rule(text: str) -> None:
    """It is no statement, and it asks for nobody in particular."""
    history = (("user", "我的卡坏了"), ("assistant", "抱歉，已经给您换好新卡了。"))
    assert dependence_of(text, history).kind == "alone"
