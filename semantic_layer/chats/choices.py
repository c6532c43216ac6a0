"""Which of things named side by side two users meant. Pure."""

import re
from collections.abc import Iterable

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.differences import key_of
from semantic_layer.chats.remains import Left
from semantic_layer.chats.small_talk import sentences, words_of
from semantic_layer.text.analysis import analyse

_BESIDE = re.compile(
    r"\b(?:and|or|nor|versus|vs|than|but|to)\b|[,;/&，、；]|还是|或者|或|跟|比|与|和|及",
    re.IGNORECASE,
)
_SMALL_ZH = frozenset("我你您他她它这那的了要想能可以会有是不也都就还先再吧呢吗请问给买用选来去做")


def other_choice(asked: Chat, stored: Chat, here: Left, there: Left) -> str:
    """Name what each user spoke of where the other spoke of what both chats name beside it.

    "The Vela has less weight, the Orbit more bass": then "I like the Vela" is another choice than
    "I like the Orbit". ``here`` and ``there`` are what is left of the histories.
    """
    one, other = _words(here.user), _words(there.user)
    own, others = one - other, other - one
    if not (own and others):
        return ""
    lines = _lines(asked)
    shared = [lines[key] for key in lines.keys() & _lines(stored).keys()]
    for line in sorted(shared):
        parts = [_words([part]) for part in _BESIDE.split(line)]
        mine = [part & own for part in parts]
        theirs = [part & others for part in parts]
        if not any(mine) or not any(theirs):
            continue
        if not any(a and b for a, b in zip(mine, theirs, strict=True)):
            names = (sorted(frozenset().union(*side)) for side in (mine, theirs))
            return " / ".join("/".join(side) for side in names)
    return ""


def _lines(chat: Chat) -> dict[str, str]:
    """Return the lines before the last message by a form that the same words share."""
    return {key_of(line): line for _, text in chat.history for line in sentences(text)}


def _words(lines: Iterable[str]) -> frozenset[str]:
    """Return the words that may name a thing."""
    light = words_of("light", "zh") | _SMALL_ZH
    tokens = (token for line in lines for token in analyse(line).content)
    return frozenset(t.norm for t in tokens if not t.weak and t.norm not in light)
