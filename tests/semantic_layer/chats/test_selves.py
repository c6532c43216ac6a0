"""Chats whose users are not the same, or chose otherwise, and chats where they only say it so."""

import pytest

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.histories import fit_of
from semantic_layer.chats.selves import other_self

OTHERS = [
    ("I take option A.", "I take option B.", "How much is it?"),
    ("option a please", "option b please", "How much is it?"),
    ("A.", "C.", "How much is it?"),
    ("I'm type A.", "I'm type B.", "Who can I give blood to?"),
    ("My blood type is A.", "My blood type is O.", "Who can I give blood to?"),
    ("I rent my flat.", "I'm a landlord.", "Who pays for repairs?"),
    ("I'm a contractor.", "I'm a full-time employee.", "How many vacation days do I get?"),
    ("I'm a buyer.", "I'm a seller.", "How do I get a refund?"),
    ("我选A。", "我选B。", "多少钱？"),
    ("我选a", "我选b", "多少流量？"),
    ("我选A套餐。", "我选B套餐。", "什么时候发货？"),
    ("我是A型血。", "我是B型血。", "能输给谁？"),
    ("我坐A区。", "我坐C区。", "怎么入场？"),
    ("我租房住。", "我是房东。", "漏水了谁负责？"),
    ("我租房住。", "我是房东。", "暖气坏了谁修？"),
    ("我是买家。", "我是卖家。", "退货运费谁出？"),
]
SAME = [
    ("I take option A.", "I'll take option A, please."),
    ("I'm type A.", "My type is A."),
    ("I'm a student.", "I am a student."),
    ("我是学生。", "我是一名学生。"),
    ("我是A型血。", "我的血型是A型。"),
    ("A friend of mine needs a laptop.", "I want a laptop for a friend."),
    ("My TV shows no U.S. channels.", "I get no US channels on my TV."),
    ("I don't know what I want.", "A 3-year-old can do it."),
    ("I'm a bit confused.", "I don't understand."),
    ("我是想退货。", "我要退货。"),
]


def chat_of(said: str, last: str) -> Chat:
    """Make a chat in which the user said one thing before the last."""
    return Chat(last, (("user", said), ("assistant", "OK.")))


@pytest.mark.parametrize(("one", "other", "last"), OTHERS)
def test_answer_is_refused_when_the_user_is_or_chose_another(
    one: str, other: str, last: str
) -> None:
    """A plan, a blood type, a tenant and his landlord: no verifier is asked."""
    for said in ((one, other), (other, one)):
        asked, stored = (chat_of(text, last) for text in said)
        assert fit_of(asked, stored).reason.verdict == "veto"


@pytest.mark.parametrize(("one", "other"), SAME)
def test_users_are_the_same_when_only_the_words_differ(one: str, other: str) -> None:
    """An article, an abbreviation, the pronoun "I" and a measure word choose nothing."""
    for said in ((one, other), (other, one)):
        asked, stored = (chat_of(text, "How does it work?") for text in said)
        assert other_self(asked, stored) == ""
