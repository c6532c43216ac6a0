"""Chats whose last messages a rewriter resolved: when its words are believed, and what meets."""

from typing import Any

import pytest

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.rewriting import distrust
from semantic_layer.outcome import Hit
from semantic_layer.request import CacheControl
from tests.fakes.house import House, layer, query
from tests.fakes.rewriter import FakeRewriter

ANY = CacheControl()
LAST = "Can I take a suitcase with it?"
LITE, OTHER, PLUS = (
    "I bought the Lite ticket to Oslo.",
    "So I've booked that Lite fare for my Oslo trip, finally!",
    "I bought the Plus ticket to Oslo.",
)
LITE_ASKED = "Can I take a suitcase with the Lite ticket to Oslo?"
CHAT = Chat(LAST, (("user", LITE), ("assistant", "Great. How can I help?")))
TRUSTED = [LITE_ASKED, "With the Lite ticket to Oslo, can I take a suitcase?"]
DISTRUSTED = [
    ("", "short line"),
    ("Sure!\nCan I take a suitcase with the Lite ticket to Oslo?", "short line"),
    ("Can I take a suitcase with it, the Lite ticket?", "stand alone"),
    ("Can I take a suitcase with the Plus ticket to Oslo?", "nobody said Plus"),
    ("Can I take 2 suitcases with the Lite ticket to Oslo?", "nobody said 2"),
    ("Is there a refund for the Lite ticket to Oslo?", "another request"),
    ("我可以带着去奥斯陆的轻便票带行李箱吗？", "language"),
]


@pytest.mark.parametrize("text", TRUSTED)
def test_rewriting_is_trusted_when_it_stands_alone_and_adds_nothing(text: str) -> None:
    """The last message's words stay, names come from what was said."""
    assert distrust(text, CHAT) == ""


@pytest.mark.parametrize(("text", "why"), DISTRUSTED)
def test_rewriting_is_distrusted_when_it_is_no_restatement(text: str, why: str) -> None:
    """Empty, several lines, a pointer left, made-up names and numbers, another request."""
    assert why in distrust(text, CHAT)


def test_rewriting_is_distrusted_when_it_loses_a_number_of_the_message() -> None:
    """What the last message names must be in it."""
    chat = Chat("Can I take 2 suitcases with it?", CHAT.history)
    assert distrust(LITE_ASKED, chat) == "lost 2"


def fields(first: str, last: str = LAST) -> dict[str, Any]:
    said = [("user", first), ("assistant", "Great. How can I help?"), ("user", last)]
    return {"messages": [{"role": role, "content": text} for role, text in said]}


def house(**table: str) -> tuple[House, FakeRewriter]:
    rewriter = FakeRewriter({LITE: LITE_ASKED, OTHER: LITE_ASKED, **table})
    return House(rewriter=rewriter), rewriter


async def test_chats_meet_when_their_rewritten_messages_do() -> None:
    """Histories in other words do not matter once the request stands alone."""
    own, rewriter = house()
    await own.seed("", **fields(LITE))
    found = await own.ask("", **fields(OTHER))
    assert layer(found) == "semantic"
    assert {reason.check for reason in found.judgement.reasons} >= {"rewrite", "history"}
    assert [chat.text for chat in rewriter.asked] == [LAST, LAST]
    assert own.stages.count("rewrite") == 2


async def test_a_plain_question_meets_a_chat_when_it_asks_what_was_rewritten() -> None:
    """A rewritten message is a question like any other."""
    own, rewriter = house()
    await own.seed("", **fields(LITE))
    assert layer(await own.ask(LITE_ASKED)) == "semantic"
    assert len(rewriter.asked) == 1


async def test_chats_do_not_meet_when_histories_contradict_the_rewriter() -> None:
    """A rewriter that takes one ticket for another is not believed against what was said."""
    own, rewriter = house()
    rewriter.table[PLUS] = "Can I take a suitcase with the ticket to Oslo?"
    rewriter.table[LITE] = "Can I take a suitcase with the ticket to Oslo?"
    await own.seed("", **fields(LITE))
    found = await own.ask("", **fields(PLUS))
    assert layer(found) == "miss"
    assert "plus" in str(found.judgement.candidates[0].reasons).casefold()


async def test_look_up_goes_on_without_when_the_rewriter_is_down() -> None:
    """Failing, it is as if there were none; in the end its breaker opens."""
    own, rewriter = house()
    rewriter.down = True
    await own.seed("", **fields(LITE))
    found = await own.ask("", **fields("Hi! " + LITE))
    assert layer(found) == "semantic"
    for _ in range(8):
        await own.ask("", **fields(OTHER))
    assert own.cache.open_breakers["rewriter"]
    assert own.failures.count("rewriter") == len(rewriter.asked) < 10


@pytest.mark.parametrize(
    "asked",
    [fields(LITE, "When does the Bramley gym open on Sundays?"), query("hello there").request],
)
async def test_rewriter_is_not_asked_when_the_message_stands_alone(asked: dict[str, Any]) -> None:
    """Only messages that need their history cost a call."""
    own, rewriter = house()
    await own.ask("", **asked)
    assert rewriter.asked == []


async def test_entry_keeps_its_rewriting_for_new_vectors() -> None:
    """Entries embedded anew are found by the same words."""
    own, _ = house()
    entry_id = await own.seed("", **fields(LITE))
    assert entry_id is not None
    entry = await own.cache.entry("t", entry_id)
    assert entry is not None
    assert entry.restated == LITE_ASKED
    assert isinstance(await own.ask("", ANY, **fields(LITE)), Hit)
