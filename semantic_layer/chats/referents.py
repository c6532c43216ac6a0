"""Whether two chats speak of a common thing that their last messages can refer to. Pure.

A word that points back ("it", 那边) says nothing of what it points at. Where hardly a telling
word of what one user spoke of stands anywhere in the other chat, they speak of other things,
whatever a verifier says of their words. Measured: 4.1% of crossed unrelated chats share a word and
.8% a quarter of them; of chats with one answer 98.3 and 97.7% do.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import pairwise

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.small_talk import is_empty, sentences, words_of
from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of, simplified
from semantic_layer.text.stemming import stem

_POINTING = frozenset({"pronoun", "opening", "short", "relation"})
_NUMBER = re.compile(r"\d{2,}")
_LATIN = re.compile(r"[a-z][a-z0-9]+")
_LEAST_SHARED = 0.25  # of what one user spoke of: long chats have some word in common by chance
_MOST_DETAIL = 80  # characters


def other_referent(asked: Chat, stored: Chat) -> str:
    """Say of what only one user spoke, "" when both chats speak of a common thing.

    Last messages that name their matter themselves, or that take up an answer, need none.
    """
    if not _POINTING.issuperset((asked.dependence.kind, stored.dependence.kind)):
        return ""
    mine, yours = _topic(asked), _topic(stored)
    if not (things_of(mine) or things_of(yours)):
        return ""
    for topic, other in ((mine, stored), (yours, asked)):
        spoken = things_of(line for _, text in other.history for line in sentences(text))
        things = things_of(topic)
        if len(things & spoken) < _LEAST_SHARED * max(1, len(things)):
            return f"nothing in common to refer to: {' '.join(topic)}"[:_MOST_DETAIL]
    return ""


def _topic(chat: Chat) -> tuple[str, ...]:
    """Return what the user said before, greetings left out."""
    return tuple(
        line
        for role, text in chat.history
        if role == "user"
        for line in sentences(text)
        if not is_empty(line)
    )


def things_of(lines: Iterable[str]) -> frozenset[str]:
    """Return the words by which lines may name a thing: none of asking, wishing or praise."""
    return frozenset().union(*map(_things_of, lines))


@lru_cache(maxsize=16_384)
def _things_of(line: str) -> frozenset[str]:
    plain = line.casefold()
    numbers = frozenset(_NUMBER.findall(plain))
    if language_of(line) == "zh":
        return numbers.union(_LATIN.findall(plain), _things_zh(line))
    words = (token.norm for token in analyse(line).content if token.kind == "word")
    return numbers.union(word for word in words if word not in _empty())


@cache
def _empty() -> frozenset[str]:
    kinds = ("imperative", "generic", "chatter", "light", "reply", "wish", "deictic", "personal")
    words = frozenset().union(*map(words_of, kinds))
    return words | frozenset(map(stem, words))


def _things_zh(line: str) -> frozenset[str]:
    """Return each two signs that stand side by side: most Chinese words are of two."""
    plain = simplified(line)
    for word in _empty_zh():
        plain = plain.replace(word, "，")
    return frozenset(a + b for a, b in pairwise(plain) if _is_sign(a) and _is_sign(b))


def _is_sign(letter: str) -> bool:
    return "\u3400" <= letter <= "\u9fff"


@cache
def _empty_zh() -> tuple[str, ...]:
    kinds = ("chatter", "filler", "accept", "decline", "pronoun", "relative", "opening", "asking")
    words = frozenset().union(*(words_of(kind, "zh") for kind in kinds))
    return tuple(sorted((word for word in words if len(word) > 1), key=len, reverse=True))
