"""When the answer given in one chat may be served in another, as far as their histories say."""

import pytest

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.histories import fit_of


def chat(*texts: str, grounded: bool = False) -> Chat:
    """Make a chat of user and assistant in turn; the last text is the user's."""
    roles = ["assistant" if i % 2 else "user" for i in range(len(texts) - 1)]
    return Chat(texts[-1], tuple(zip(roles, texts[:-1], strict=True)), grounded)


TICKET = (
    "I bought the Lite ticket to Oslo.",
    "Great! How can I help?",
    "Can I take a bag with it?",
)
OFFER = ("my modem is slow", "Shall I restart it now?", "yes")
SIDE = ("what are your phone lines' hours", "8 to 8, every day.")
LATER = ("Thanks.", "You're welcome!")
FITTING = [
    ((*TICKET[:2], *LATER, TICKET[2]), (*SIDE, *TICKET[:2], *LATER, TICKET[2])),
    (TICKET, ("Hi, lovely day! I bought the Lite ticket to Oslo.", *TICKET[1:])),
    (TICKET, (TICKET[0], "Lovely, thanks for letting me know! How can I help?", TICKET[2])),
    (OFFER, (*OFFER[:2], "Yes please, go ahead")),
    (
        ("Do you have a pool?", "Yes, 20 m.", "When does the Bramley gym open on Sundays?"),
        ("hi", "Hello!", "When does the Bramley gym open on Sundays?"),
    ),
    (
        ("What does APR stand for?",),
        ("Can I pay in cheques?", "Up to £500 a day.", "What does APR stand for?"),
    ),
    (("我买了去上海的学生票", "好的，请问有什么问题？", "它能退吗"),) * 2,
]
UNFIT = [
    (
        ("Which phones have a jack?", "The Pixo 5a and the Rugged 2.", "is the first one good?"),
        ("Which phones have a jack?", "The Rugged 2 and the Pixo 5a.", "is the first one good?"),
    ),
    (
        ("What does A pay?", "A pays 60%.", "I need two new crowns in May, what would A pay?"),
        ("What does A pay?", "A pays 50%.", "I need two new crowns in May, what would A pay?"),
    ),
    (
        ("can I bring snacks?", "Yes.", *TICKET),
        ("do you sell vans?", "Yes.", "I hired a van.", *TICKET[1:]),
    ),
    (TICKET, ("I bought the Plus ticket to Oslo.", *TICKET[1:])),
    (TICKET, ("I bought the Lite ticket to Oslo. I'm also travelling with a cat.", *TICKET[1:])),
    (TICKET, ("I hired a van.", "Great! How can I help?", TICKET[2])),
    (OFFER, (OFFER[0], "Shall I order a new one now?", "yes")),
    (OFFER, (*OFFER[:2], "no")),
    (TICKET, (TICKET[2],)),
    (
        ("Is there parking at Fernlea Surgery?", "Yes.", "What time does the surgery open?"),
        ("Is there parking at Oakley Surgery?", "Yes.", "What time does the surgery open?"),
    ),
    (
        ("我买了去上海的学生票", "好的，请问有什么问题？", "它能退吗"),
        ("我买了去上海的成人票", "好的，请问有什么问题？", "它能退吗"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), FITTING)
def test_histories_fit_when_they_differ_in_nothing_that_matters(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    """Small talk, and anything before a message that stands alone, may be another."""
    for pair in ((one, other), (other, one)):
        fit = fit_of(*(chat(*texts) for texts in pair))
        assert (fit.reason.verdict, fit.doubts) == ("pass", ()), fit


FLIGHT = ("My flight goes from Madrid to Lima.", "Noted.", "How long is it?")
SWAPPED = [
    (
        ("My dog bit the neighbour.", "Oh no.", "What should I do about it?"),
        ("The neighbour bit my dog.", "Oh no.", "What should I do about it?"),
    ),
    (FLIGHT, ("My flight goes from Lima to Madrid.", *FLIGHT[1:])),
    (
        ("Tom lent Anna the car.", "OK.", "Who should pay for the fuel?"),
        ("Anna lent Tom the car.", "OK.", "Who should pay for the fuel?"),
    ),
    (
        ("Which card?", "The Visa is better than the Master card.", "Why is that?"),
        ("Which card?", "The Master card is better than the Visa.", "Why is that?"),
    ),
    (
        ("I want the red shirt, not the blue one.", "Sure.", "Can I get it in M?"),
        ("I want the blue shirt, not the red one.", "Sure.", "Can I get it in M?"),
    ),
    (
        ("I ran the migration before the backup.", "Hm.", "Is that a problem?"),
        ("I ran the backup before the migration.", "Hm.", "Is that a problem?"),
    ),
    (("我从北京飞到东京。", "好的。", "要多久？"), ("我从东京飞到北京。", "好的。", "要多久？")),
]


@pytest.mark.parametrize(("one", "other"), SWAPPED)
def test_histories_are_refused_when_two_things_in_them_changed_places(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    """S07 in the past of a chat: the same words in another order mean another thing."""
    found = fit_of(chat(*one), chat(*other))
    assert (found.score, found.reason.verdict) == (0.0, "veto")
    assert "exchanged" in found.reason.detail


def test_history_is_doubted_when_its_words_only_moved() -> None:
    """Another order without an exchange is for the verifier to read."""
    moved = ("From Madrid to Lima my flight goes.", *FLIGHT[1:])
    found = fit_of(chat(*FLIGHT), chat(*moved))
    read = [(d.one, d.is_addition) for d in found.doubts]
    assert read == [(f"{FLIGHT[0]} {FLIGHT[-1]}", False)]


@pytest.mark.parametrize(("one", "other"), UNFIT)
def test_histories_are_refused_or_doubted_when_the_message_refers_to_another_thing(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    """Another thing bought, one more fact, another offer, another answer to it, another place.

    Contradictions are refused; other words are doubts, which only a verifier can lift.
    """
    for pair in ((one, other), (other, one)):
        fit = fit_of(*(chat(*texts) for texts in pair))
        assert fit.reason.verdict == "veto" or fit.doubts
        assert fit.reason.detail


def test_nothing_is_asked_of_sentences_when_lines_contradict_each_other() -> None:
    """Whether other lines are small talk cannot heal "Lite" against "Plus", so nobody is asked."""
    other = ("My dentist recommended you so warmly!", "I bought the Plus ticket to Oslo.")
    fit = fit_of(chat(*TICKET), chat(" ".join(other), *TICKET[1:]), lambda _: None)
    assert fit.score == 0.0
    assert fit.unsure == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            ("A table for 8 on Friday.", "Are all of you adults?", "7 adults and a child."),
            ("A table on Friday, there are 8 of us.", "All adults?", "One of the 8 is a child."),
        ),
        (
            ("Does my pass hold for the 8.12?", "Yes, above the lowest fare."),
            ("How much is it on the 08:12?", "15. Have you a pass?", "I have."),
        ),
    ],
)
def test_numbers_do_not_contradict_when_the_user_says_them_elsewhere_or_otherwise(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    """Who speaks of 8 and of 7 may be the one who speaks of 8 twice; 8.12 is 08:12."""
    last = "what do we pay for it then?"
    one, other = (texts if len(texts) % 2 == 0 else (*texts, "Noted.") for texts in (one, other))
    found = fit_of(chat(*one, last), chat(*other, last))
    assert found.reason.verdict == "pass", found.reason


def test_numbers_contradict_when_an_assistant_names_both_to_choose_from() -> None:
    """Whichever words he names them in."""
    one = ("I have a fix.", "Is yours the 1 year or the 2 year fix?", "The 2 year fix.", "Thanks.")
    other = ("I've got a fix.", "The 1 year or the 2 year one?", "The 1 year fix.", "Thank you.")
    last = "so what's the charge for it?"
    assert fit_of(chat(*one, last), chat(*other, last)).score == 0.0
