"""Which last messages stand alone, and which need the messages before them."""

import pytest

from semantic_layer.chats.dependence import dependence_of
from semantic_layer.chats.small_talk import is_chatter, reply_of

QUESTION = [("user", "Do you have a pool?"), ("assistant", "Yes, 20 m.")]
FACT = [("user", "I'm on the Basic plan."), ("assistant", "Thanks. What would you like to know?")]

ALONE = [
    "What are the opening hours of the Bramley gym on Sundays?",
    "Translate 'good morning' into Italian",
    "How long does it take to fly from London to Oslo?",
    "Is it legal to park on a single yellow line on Sundays?",
    "Is there a cash machine near the Fernway branch?",
    "I would like to close my Tidemail account",
    "法国的首都是哪里？",
    "怎么重置家里路由器的密码？",
]
REFERRING = [
    ("Can I take a suitcase with it?", "pronoun"),
    ("Is that allowed?", "pronoun"),
    ("does she need a passport?", "pronoun"),
    ("I'll take the second one", "pronoun"),
    ("which does DNS use", "pronoun"),
    ("can I check in earlier?", "pronoun"),
    ("and in Polish?", "opening"),
    ("What about children?", "opening"),
    ("it says account locked", "pronoun"),
    ("September, the 4th", "answer"),
    ("give me an example in Java", "relation"),
    ("what's the minimum?", "relation"),
    ("Where do I apply?", "short"),
    ("yes please, go ahead", "reply"),
    ("ok sure", "reply"),
    ("no thanks", "reply"),
    ("那上海呢？", "pronoun"),
    ("这个多少钱？", "pronoun"),
    ("好的，谢谢", "reply"),
    ("不用了谢谢", "reply"),
    ("要带身份证吗", "short"),
]


@pytest.mark.parametrize("text", ALONE)
def test_message_stands_alone_when_it_names_what_it_asks_for(text: str) -> None:
    """Nothing in it points back, and it says enough by itself."""
    assert dependence_of(text, QUESTION).alone


@pytest.mark.parametrize(("text", "kind"), REFERRING)
def test_message_refers_back_when_something_in_it_does(text: str, kind: str) -> None:
    """A pronoun, an opening word, an open relation, a bare reply, or too little said."""
    found = dependence_of(text, QUESTION)
    assert (found.kind, bool(found.detail)) == (kind, True)


def test_personal_question_refers_back_when_the_user_told_something() -> None:
    """What I may do turns on what I said of myself; without such, it is everybody's question."""
    text = "How many projects can I create on Kanboard Cloud?"
    assert dependence_of(text, FACT).kind == "personal"
    assert dependence_of(text, QUESTION).alone


OURS = [
    "What is our policy on remote work?",
    "Which bank account do we use for payroll?",
    "Can we return opened goods to the supplier?",
]
ASKED_BEFORE = [("user", "What is our shipping time?"), ("assistant", "Two days.")]
OF_US = [("user", "We bought the Pro plan."), ("assistant", "Great.")]


@pytest.mark.parametrize("text", OURS)
def test_our_matters_are_the_documents_when_documents_are_named(text: str) -> None:
    """They are about "us", unless the user told of "us" himself; his own premises still count."""
    assert dependence_of(text, ASKED_BEFORE).kind == "personal"
    assert dependence_of(text, ASKED_BEFORE, documented=True).alone
    assert dependence_of(text, OF_US, documented=True).kind == "personal"
    assert dependence_of(text, FACT, documented=True).kind == "premise"


@pytest.mark.parametrize(
    "text",
    ["How many days of holiday do I get in our company?", "Which of our offices is my desk in?"],
)
def test_my_matters_are_the_users_when_documents_are_named(text: str) -> None:
    """What one person gets turns on what he told, whatever the documents are."""
    for history in (FACT, ASKED_BEFORE):
        assert dependence_of(text, history, documented=True).kind == "personal"


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Yes, please do.", "yes"),
        ("sure, go ahead", "yes"),
        ("Nope, thank you", "no"),
        ("yes or no?", ""),
        ("yes but only for May", ""),
        ("可以的，麻烦你了", "yes"),
        ("不要", "no"),
        ("可以退款吗", ""),
    ],
)
def test_reply_is_read_when_it_says_nothing_else(text: str, reply: str) -> None:
    """Only a bare yes or no is one; a condition or a question makes it a message of its own."""
    assert reply_of(text) == reply


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Hello there, hope you're having a lovely day!", True),
        ("haha love it, so excited", True),
        ("今天好冷啊，哈哈", True),
        ("I'm also pregnant.", False),
        ("I bought it 3 weeks ago", False),
        ("it's for my business", False),
        ("我买的是学生票", False),
    ],
)
def test_small_talk_is_told_from_facts_when_answers_could_turn_on_these(
    sentence: str, *, expected: bool
) -> None:
    """A number or a thing that is no small talk's is a fact."""
    assert is_chatter(sentence) == expected
