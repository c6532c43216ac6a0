"""In how many places two texts are worded differently, whatever the words mean. Pure."""

import re
from difflib import SequenceMatcher

from semantic_layer.comparison.edits import Comparison
from semantic_layer.text.analysis import Analysis
from semantic_layer.text.english_words import read_words
from semantic_layer.text.likeness import is_one_slip
from semantic_layer.text.script import normalise, simplified, take_payloads

_SIGN = re.compile(r"\d+(?:[.:/-]\d+)*|[A-Za-z]+|[\u3400-\u9fff\uf900-\ufaff]")


def num_rewordings(c: Comparison) -> int:
    """Count the runs of words that only one text has, or each has its own of.

    How a text is typed is no wording: case, punctuation, spaces, width, script, contractions, and
    the politeness around it.
    """
    one, other = _words(c.one, c), _words(c.other, c)
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return sum(name != "equal" for name, *_ in blocks)


def _words(side: Analysis, c: Comparison) -> list[str]:
    plain = take_payloads(normalise(side.text)).rest
    if side.language == "zh":
        return _SIGN.findall(simplified(plain.casefold()))
    return [word.lower for word in read_words(plain, c.lexicon)]


def exchanged_word(c: Comparison) -> tuple[str, str] | None:
    """Return the one word that each text has where the other has its own, all else being equal.

    Verifiers are wrong of such pairs more often than of others with the same score.
    """
    if c.order != "same" or c.one.frame != c.other.frame:
        return None
    if c.one.language == "zh":
        return _exchanged_signs(c)
    if len(c.only_one) != 1 or len(c.only_other) != 1 or c.count("same") < len(c.pairs):
        return None
    one, other = c.only_one[0], c.only_other[0]
    is_word = one.kind == other.kind == "word" and not (one.weak and other.weak)
    return (one.norm, other.norm) if is_word and not _may_be_one(one.norm, other.norm) else None


def added_phrase(c: Comparison) -> str | None:
    """Return the words that narrow one English text, all of whose others the other has too.

    They begin with a preposition ("… in a conservation area"). Verifiers take a question of all and
    one of some for the same more often than other pairs with the same score.
    """
    if c.one.language != "en" or c.order != "same" or c.one.frame != c.other.frame:
        return None
    if bool(c.only_one) == bool(c.only_other) or c.count("same") < len(c.pairs):
        return None
    side, lone = (c.one, c.only_one) if c.only_one else (c.other, c.only_other)
    if all(token.weak or token.norm in _ANYWHERE for token in lone) or num_rewordings(c) != 1:
        return None
    first = side.tokens.index(lone[0])
    is_led = first > 1 and side.tokens[first - 1].norm in _LEADING
    return " ".join(token.norm for token in lone) if is_led else None


_LEADING = frozenset({
    "in", "on", "at", "for", "from", "with", "during", "under", "over", "near", "inside",
    "outside", "after", "before", "without", "within", "by", "of", "behind", "between", "through",
    "as", "if", "unless", "against", "around", "into", "since", "until", "via", "among", "above",
    "below",
})  # fmt: skip
_ANYWHERE = frozenset({"world", "life", "earth", "now", "home", "moment", "advanc", "general"})


def _may_be_one(one: str, other: str) -> bool:
    """Say whether two words may be one, misspelt or with another ending ("safe", "safely")."""
    is_ending = one.startswith(other) or other.startswith(one)
    return is_ending or sorted(one) == sorted(other) or is_one_slip(one, other)


def _exchanged_signs(c: Comparison) -> tuple[str, str] | None:
    """Return a Chinese word of two signs and the one in its place, no sign of which it shares."""
    here, there = ([token.norm for token in side.tokens] for side in (c.one, c.other))
    blocks = SequenceMatcher(None, here, there, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    if len(changed) != 1:
        return None
    _, first, last, start, end = changed[0]
    one, other = "".join(here[first:last]), "".join(there[start:end])
    is_word = len(one) == len(other) == _WORD and not set(one) & set(other)
    return (one, other) if is_word else None


_WORD = 2  # signs of most Chinese words; one sign alone is misspelt as often
