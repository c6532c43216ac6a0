"""Chats that are the same around one message, with another thing in its place. Own texts."""

import pytest

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.histories import fit_of
from semantic_layer.chats.stand_ins import stand_in

UMBRELLA = "I left my umbrella on the 9:40 from Hexham yesterday"
LATE = "the 9:40 from Hexham was an hour late yesterday"
FILLED = "filled that in already|Thanks, a reference is on its way.|how long until I hear anything?"
AWAY = "going abroad for work until May|Passes can be paused, and so can lesson packs."
PAUSE = "Noted.|how long can you pause it"
DENT = "the lamp I ordered has a dent"
DO = "Shall we check first?|it's order 551|Thanks, found it. Shall I go on as I said?|yes do"
AWAY_ZH = "我下个月要出差|好的，会员卡和私教课都可以延期。"
PAUSE_ZH = "明白了。|最长可以延多久？"
OTHER = (
    (f"{UMBRELLA}|You can report it on our form.|{FILLED}", f"{LATE}|You can claim here.|{FILLED}"),
    (
        f"{AWAY}|it's my swimming lessons I worry about, five left|{PAUSE}",
        f"{AWAY}|it's my pass I worry about, never mind the lessons|{PAUSE}",
    ),
    (
        f"{DENT}|Sorry! I can refund all of it. {DO}",
        f"{DENT}|Sorry! I can post a replacement. {DO}",
    ),
    (
        f"{AWAY_ZH}|我担心的是私教课，还剩五节|{PAUSE_ZH}",
        f"{AWAY_ZH}|我担心的是会员卡，课已上完|{PAUSE_ZH}",
    ),
)
BROLLY = "my brolly is still on yesterday's train from Hexham, the 9:40"
SAME = (
    (
        f"{UMBRELLA}|You can report it on our form.|{FILLED}",
        f"{UMBRELLA}, of all days|Oh no! You can report it on our form.|{FILLED}",
    ),
    (f"{UMBRELLA}|Report it here.|how long is that?", f"{BROLLY}|Use a form.|how long is that?"),
)


def chat_of(lines: str) -> Chat:
    *before, last = lines.split("|")
    return Chat(last, tuple((("user", "assistant")[i % 2], text) for i, text in enumerate(before)))


@pytest.mark.parametrize("pair", OTHER)
def test_no_chat_fits_with_another_thing_in_the_place_of_one(pair: tuple[str, str]) -> None:
    """Whatever a verifier would say of two texts that have so much in common."""
    one, other = map(chat_of, pair)
    assert stand_in(one, other, one.history, other.history)
    assert {fit_of(one, other).score, fit_of(other, one).score} == {0.0}


@pytest.mark.parametrize("pair", SAME)
def test_nothing_stands_in_when_one_only_says_more_or_all_is_reworded(
    pair: tuple[str, str],
) -> None:
    """Additions are no other thing, and in a chat worded anew no place is the same."""
    one, other = map(chat_of, pair)
    assert stand_in(one, other, one.history, other.history) == ""
