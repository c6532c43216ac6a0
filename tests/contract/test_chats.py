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
PEAK = "What is the tallest mountain in Africa?"
TANK = "Which fuel should go in the tank?"
KEY = "Tell me where the key lies."
COIN = "What is the local currency?"
PARK = "酒店有停车场吗？"
OTHERS = [
    (("Is Rome nice?", "Yes.", COIN), ("Is Oslo nice?", "Yes.", COIN)),
    (
        ("推荐一家酒店", "如家。", "酒店有停车场吗？"),
        ("推荐一家酒店", "汉庭。", "酒店有停车场吗？"),
    ),
    (TICKET, ("I hired a small van for Saturday.", *TICKET[1:])),
    (TICKET, ("I bought the Plus ticket to Oslo.", *TICKET[1:])),
    (TICKET, TICKET[2:]),
    (OFFER, (OFFER[0], "The drain is blocked. Shall I send you a guide for it?", OFFER[2])),
    (OFFER, (*OFFER[:2], "no thanks")),
    (ZH, ("我买了去上海的成人票", *ZH[1:])),
    (("Reply in verse from now on.", "Gladly.", PEAK), ("hi", "Hello!", PEAK)),
    (("I'm on a canal boat.", "OK.", TANK), ("I'm on a motorbike.", "OK.", TANK)),
    (("The key lies under the mat.", "OK.", KEY), ("The key lies under the pot.", "OK.", KEY)),
]
SAME = [
    (("Is Rome nice?", "Yes.", PEAK), ("Is Oslo nice?", "Yes.", PEAK)),
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


PAGES = "Refunds are paid within ten days. " * 20
QUESTION = "How long does a refund take to arrive?"
RAG = {"query": QUESTION, "context": ["doc-1", "doc-2"], "tags": ["doc-1", "doc-2"]}


def grounded(*said: str, question: str = QUESTION) -> list[dict[str, str]]:
    """Return a chat whose last message carries the pages that answer it."""
    return messages((*said, f"{PAGES}\n\nAnswer from these pages: {question}"))


def test_grounded_question_hits_through_other_small_talk(relay: Relay) -> None:
    """``query`` and ``context`` decide, whatever was chatted before."""
    relay.seed(grounded("hi", "Hello! How can I help?"), strata=RAG)
    again = {**RAG, "context": ["doc-2", "doc-1"]}
    chat = grounded("Hi there, lovely day!", "It is! What can I do for you?", question="refund?")
    assert relay.answer(chat, strata=again).headers["x-strata-cache"] == "semantic"


def test_grounded_question_misses_when_it_refers_to_another_history(relay: Relay) -> None:
    """A named query that leans on the chat needs the same chat."""
    asked = {**RAG, "query": "How long does it take?"}
    relay.seed(grounded("I sent back a kettle.", "Noted."), strata=asked)
    other = grounded("I ordered a new boiler.", "Noted.")
    assert relay.answer(other, strata=asked).headers["x-strata-cache"] == "miss"


def test_grounded_answers_go_when_a_document_does(relay: Relay) -> None:
    """Removing by a document's tag removes each answer built on it, for repeats and rewordings."""
    chat = grounded("hi", "Hello! How can I help?")
    relay.seed(chat, strata=RAG)
    apart = {"query": "Who pays for the return?", "context": ["doc-3"], "tags": ["doc-3"]}
    relay.seed(grounded(question="Who pays for the return?"), strata=apart)
    space = relay.http.headers["x-strata-namespace"]
    gone = relay.http.delete("/admin/cache/entries", params={"tag": "doc-2", "namespace": space})
    assert gone.json()["deleted"] == 1
    for asked in (chat, grounded("hello", "Hi!")):
        found = relay.lookup(relay.body(asked, strata=RAG))
        assert found["outcome"] == "miss"
    kept = relay.lookup(relay.body(grounded(question="Who pays for the return?"), strata=apart))
    assert kept["outcome"] == "exact"
