"""Which chats share an answer: the whole conversation decides, not its last message."""

import pytest

from tests.contract.conftest import Relay

Chat = tuple[str, ...]
TICKET: Chat = (
    "I bought the Lite ticket to Oslo.",
    "Great, it is booked. How can I help?",
    "Can I take a suitcase with it?",
)
OFFER: Chat = (
    "My washing machine shows E18.",
    "The drain is blocked. Shall I book an engineer for you?",
    "yes please",
)
HOURS: Chat = ("Do you have a pool?", "Yes, 20 m.", "When does the Bramley gym open on Sundays?")
ZH: Chat = ("我买了去上海的学生票", "好的，请问有什么问题？", "它能退吗")
OTHERS = [
    (TICKET, ("I hired a small van for Saturday.", *TICKET[1:])),
    (TICKET, ("I bought the Plus ticket to Oslo.", *TICKET[1:])),
    (TICKET, TICKET[2:]),
    (OFFER, (OFFER[0], "The drain is blocked. Shall I send you a guide for it?", OFFER[2])),
    (OFFER, (*OFFER[:2], "no thanks")),
    (ZH, ("我买了去上海的成人票", *ZH[1:])),
]
SAME = [
    (TICKET, ("Hi there, what a lovely day! I bought the Lite ticket to Oslo.", *TICKET[1:])),
    (TICKET, (*TICKET[:2], "thanks!", "You're welcome!", TICKET[2])),
    (OFFER, (*OFFER[:2], "Yes, please do.")),
    (HOURS, ("hi", "Hello!", HOURS[2])),
    (HOURS, ("How do I freeze my membership?", "In the app, under Membership.", HOURS[2])),
]


def messages(chat: Chat) -> list[dict[str, str]]:
    """Return user and assistant in turn."""
    roles = ["assistant" if i % 2 else "user" for i in range(len(chat))]
    return [{"role": role, "content": text} for role, text in zip(roles, chat, strict=True)]


@pytest.mark.parametrize(("stored", "asked"), [*OTHERS, *((b, a) for a, b in OTHERS)])
def test_answer_is_a_miss_when_the_last_message_follows_another_history(
    relay: Relay, stored: Chat, asked: Chat
) -> None:
    """Another thing bought, nothing bought, another offer, another reply to it."""
    relay.seed(messages(stored))
    assert relay.answer(messages(asked)).headers["x-strata-cache"] == "miss"


@pytest.mark.parametrize(("stored", "asked"), SAME)
def test_answer_is_semantic_when_only_small_talk_differs(
    relay: Relay, stored: Chat, asked: Chat
) -> None:
    """The same request reached another way, or one that needs nothing said before."""
    relay.seed(messages(stored))
    response = relay.answer(messages(asked))
    assert response.headers["x-strata-cache"] == "semantic", relay.lookup(
        relay.body(messages(asked))
    )
