"""What two texts tell apart, in whatever order they tell it: for what was said before. Pure."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from semantic_layer.chats.small_talk import WORD, words_of
from semantic_layer.comparison.edits import Comparison, compare
from semantic_layer.text.analysis import Token, analyse
from semantic_layer.text.script import normalise
from semantic_layer.text.stemming import stem

_MOST_CHANGED = 3  # words; beyond, two texts are no twins, and an opposite says little


@dataclass(frozen=True, slots=True)
class Difference:
    """Telling words that one text has and the other lacks, and what contradicts outright.

    ``in_order`` tells that what both say comes in the same order.
    """

    one: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    conflict: str = ""
    in_order: bool = True

    @property
    def is_none(self) -> bool:
        """Whether the two say the same."""
        return not (self.one or self.other or self.conflict)

    @property
    def is_addition(self) -> bool:
        """Whether one only says more than the other."""
        return not self.conflict and bool(self.one) != bool(self.other)

    def __str__(self) -> str:
        sides = (" ".join(side[:4]) or "nothing" for side in (self.one, self.other))
        return self.conflict or " / ".join(sides)


@lru_cache(maxsize=8192)
def difference(one: str, other: str) -> Difference:
    """Compare what two texts tell; words that only tie things together are no difference."""
    if normalise(one).casefold() == normalise(other).casefold():
        return Difference()
    c = compare(analyse(one), analyse(other))
    denied = c.one.num_negations - c.other.num_negations
    return Difference(
        (*_telling(c.only_one), *(["not"] * denied)),
        (*_telling(c.only_other), *(["not"] * -denied)),
        _conflict(c) or _exchange(c),
        c.order == "same",
    )


@lru_cache(maxsize=16_384)
def key_of(text: str) -> str:
    """Return a form that texts differing in case and outer punctuation share."""
    return normalise(text).casefold().strip(" .!?,;:。！？，；")


@cache
def _light() -> frozenset[str]:
    return frozenset(stem(word) for word in words_of("light"))


def _telling(tokens: Iterable[Token]) -> tuple[str, ...]:
    light = _light() | words_of("light", "zh")
    return tuple(t.surface or t.norm for t in tokens if not t.weak and t.norm not in light)


def _conflict(c: Comparison) -> str:
    """Name what two texts contradict each other in: a number, code, an opposite."""
    if c.one.language != c.other.language and c.one.content and c.other.content:
        return f"{c.one.language} / {c.other.language}"
    one, other = (Counter(map(cardinal, side.numbers)) for side in (c.one, c.other))
    if one - other and other - one:
        return f"{' '.join(one - other)} / {' '.join(other - one)}"
    if c.one.codes != c.other.codes:
        return "code or addresses"
    return _opposition(c)


def cardinal(number: str) -> str:
    """Read the 18th as 18."""
    return re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", number)


def _exchange(c: Comparison) -> str:
    """Say so when two things only changed places ("from A to B", "A bit B").

    With any other word changed it may be a rewording: their order differs then, no more.
    """
    is_turned = c.order == "swapped" or c.is_exchange
    same_words = Counter(_words(c.one.text)) == Counter(_words(c.other.text))
    return "the same words, exchanged" if is_turned and same_words else ""


def _words(text: str) -> list[str]:
    plain = normalise(text).casefold()
    return WORD.findall(plain) + [sign for sign in plain if not sign.isascii() and sign.isalpha()]


def _opposition(c: Comparison) -> str:
    if len(c.only_one) + len(c.only_other) > _MOST_CHANGED:
        return ""
    ones, others = c.only_marks()
    for a in sorted({t.norm for t in c.only_one} | ones):
        for b in sorted({t.norm for t in c.only_other} | others):
            shared = c.lexicon.shared_set(a, b) and not c.lexicon.are_synonyms(a, b)
            if shared or c.lexicon.are_opposites(a, b):
                return f"{a} / {b}"
    return ""
