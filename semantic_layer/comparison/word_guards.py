"""Guards over single words: numbers, negations, opposites, members of sets, names. Pure."""

from collections import Counter
from dataclasses import replace

from semantic_layer.comparison.amounts import are_converted, is_time_unit, may_be_texting, unmatched
from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import (
    Finding,
    addition,
    agreement,
    difference,
    exchange,
    is_like_built,
)
from semantic_layer.text.analysis import Token
from semantic_layer.text.likeness import are_counterparts, is_misspelt_name, is_one_slip

_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "de", "mis", "anti", "counter", "a")


def numbers(c: Comparison) -> Finding | None:
    """Numbers, versions, dates or ordinals differ, even when read with their units of time."""
    if Counter(c.one.numbers) == Counter(c.other.numbers):
        return None
    ones, others = unmatched(c.one, c.other)
    if not (ones or others):
        return None
    is_lone = not (ones and others)
    may_mean_nothing = is_lone and (may_be_texting(ones or others) or _is_number_misspelt(c))
    found = difference(c, c.one.numbers, c.other.numbers, exchanged=bool(ones and others))
    detail = f"{'/'.join(ones) or 'none'} / {'/'.join(others) or 'none'}"
    return replace(found, detail=detail, may_mean_nothing=may_mean_nothing)


def _is_number_misspelt(c: Comparison) -> bool:
    """Say whether a number in words may be a word of the other text, misspelt ("fiften")."""
    return any(
        is_one_slip(number.surface.casefold(), word.surface.casefold())
        for number in (*c.only_one, *c.only_other)
        if number.kind == "number" and number.surface.isalpha()
        for word in (*c.only_one, *c.only_other)
        if word.kind == "word"
    )


def negation(c: Comparison) -> Finding | None:
    """One text denies more often than the other."""
    one, other = c.one.num_negations, c.other.num_negations
    if one == other:
        return None
    words = c.lexicon.classes["negation"]
    detail = f"{one} / {other} negations"
    return addition(c, words, detail, may_mean_nothing=is_undone(c) or not is_like_built(c))


def is_undone(c: Comparison) -> bool:
    """Say whether one text denies the opposite of what the other says ("bad", "not good")."""
    if abs(c.one.num_negations - c.other.num_negations) != 1:
        return False
    found = _opposites(c)
    denials = c.lexicon.classes["negation"]
    return found is not None and not any(
        word in denials or (not word.isascii() and not denials.isdisjoint(word)) for word in found
    )


def polarity(c: Comparison) -> Finding | None:
    """A word became its opposite."""
    found = _opposites(c)
    if found is None:
        return None
    may_mean_nothing = is_undone(c) or _may_say_otherwise(c, *found)
    return exchange(c, *found, may_mean_nothing=may_mean_nothing)


def _opposites(c: Comparison) -> tuple[str, str] | None:
    ones, others = _without_counterparts(c, *_only_words(c))
    in_order = sorted(others)
    for a in sorted(ones):
        for b in in_order:
            if c.lexicon.are_opposites(a, b) or _are_turned(a, b):
                return a, b
    return None


def _without_counterparts(
    c: Comparison, ones: set[str], others: set[str]
) -> tuple[set[str], set[str]]:
    """Drop words that the other text has by another name with the same opposites."""
    opposites = c.lexicon.opposites
    here, there = (opposites.keys() & words for words in (ones, others))
    alike = {word for a in here for b in there if opposites[a] & opposites[b] for word in (a, b)}
    return ones - alike, others - alike


def _may_say_otherwise(c: Comparison, a: str, b: str) -> bool:
    """Say whether an opposite may be taken back: by another order, or as a mere particle."""
    if {a, b} == {"with", "without"} and c.one.num_negations == c.other.num_negations:
        return True
    is_link = {a, b} & c.lexicon.classes.get("preposition", frozenset())
    return c.order == "swapped" or bool(is_link and not is_like_built(c))


def _are_turned(a: str, b: str) -> bool:
    if a[-1:] != b[-1:] and a[:1] != b[:1]:
        return False  # one is not the end of the other, nor have they an ending or a root in common
    return is_prefixed(a, b) or is_prefixed(b, a) or are_counterparts(a, b)


def exclusive(c: Comparison) -> Finding | None:
    """One member of a set became another (a weekday, a country, a unit …), or came in alone."""
    ones, others = _only_words(c)
    for a in sorted(ones):
        for b in sorted(others):
            if c.lexicon.shared_set(a, b) and not _are_alike(c, a, b):
                return exchange(c, a, b, may_mean_nothing=_is_loose(c, a, b))
    for word in sorted(ones | others):
        if any(found.strict for found in c.lexicon.sets.get(word, ())):
            detail = f"{word} on one side only"
            return addition(c, {word}, detail, may_mean_nothing=not is_like_built(c))
    return None


def _are_alike(c: Comparison, a: str, b: str) -> bool:
    """Say whether two members of a set mean the same: synonyms, or units that numbers follow."""
    is_time = is_time_unit(a) and is_time_unit(b)
    return c.lexicon.are_synonyms(a, b) or (is_time and are_converted(c.one, c.other))


def _is_loose(c: Comparison, a: str, b: str) -> bool:
    """Say whether the two are mere links or pointers, which rewordings exchange freely."""
    classes = c.lexicon.classes
    loose = classes.get("preposition", _NONE) | classes.get("linked", _NONE)
    return bool({a, b} & loose) and not (is_like_built(c) and agreement(c, {a}, {b}) == 1.0)


def names(c: Comparison) -> Finding | None:
    """Both texts name something the other does not, or by a name with another ending."""
    for a, b in c.endings:
        if a.name and b.name:
            return exchange(c, a.surface, b.surface, may_mean_nothing=True)
    if (surnames := _other_surname(c)) is not None:
        return exchange(c, *surnames)
    one = [token for token in c.only_one if token.name]
    other = [token for token in c.only_other if token.name]
    if not (one and other):
        return _brand(c)
    if len(one) == len(other) == 1 and is_misspelt_name(one[0].norm, other[0].norm):
        return None
    if len(one) != len(other) and is_one_slip(_joined(one), _joined(other)):
        return None
    found = difference(c, {t.norm for t in one}, {t.norm for t in other})
    detail = f"{one[0].surface} / {other[0].surface}"
    related = any(_may_be_one(a, b) for a in one for b in other)
    return Finding(detail, True, found.agreement, related or not is_like_built(c))


def _other_surname(c: Comparison) -> tuple[str, str] | None:
    """Find two names that only begin alike behind the same first name ("Paul Simonon")."""
    places = {pair.one: pair.other for pair in c.pairs}
    for pair in c.pairs:
        if pair.how != "derived" or places.get(pair.one - 1, -1) != pair.other - 1:
            continue
        a, b = c.one.tokens[pair.one], c.other.tokens[pair.other]
        first = c.one.tokens[pair.one - 1]
        short, long = sorted((a.surface.casefold(), b.surface.casefold()), key=len)
        if a.name and b.name and first.name and long.removeprefix(short) not in _OF_A_PLACE:
            return a.surface, b.surface
    return None


_OF_A_PLACE = frozenset({"n", "an", "ian", "er", "ese", "ish", "i", "ic", "s"})


def lookalikes(c: Comparison) -> Finding | None:
    """A word gave way to one with letters put in between ("prednisone", "prednisolone")."""
    if c.one.language != "en" or len(c.only_one) != 1 or len(c.only_other) != 1:
        return None
    a, b = (only[0].surface.casefold() for only in (c.only_one, c.only_other))
    is_alike = a[:_SAME_START] == b[:_SAME_START] and a[-_SAME_END:] == b[-_SAME_END:]
    is_long = min(len(a), len(b)) >= _LONG_WORD and a.isalpha() and b.isalpha()
    if not (is_alike and is_long) or abs(len(a) - len(b)) < _PUT_IN:
        return None
    return exchange(c, c.only_one[0].norm, c.only_other[0].norm)


_SAME_START, _SAME_END, _LONG_WORD, _PUT_IN = 3, 3, 7, 2  # letters; one more is mistyped


def _brand(c: Comparison) -> Finding | None:
    """Find a name that makes a thing of any kind one of its own ("Bose headphones")."""
    side = c.one if c.only_one else c.other
    if len(c.only_one) + len(c.only_other) != 1 or not is_like_built(c):
        return None
    token = (*c.only_one, *c.only_other)[0]
    after = side.tokens[side.tokens.index(token) + 1 :][:1]
    if not token.name or not after or after[0].name or after[0].kind != "word" or after[0].free:
        return None
    return addition(c, {token.norm}, f"{token.surface} on one side only")


def _joined(tokens: list[Token]) -> str:
    """Return a name as it is typed: one that is known is read as one word, however many it has."""
    return " ".join((token.surface or token.norm).casefold() for token in tokens)


def _may_be_one(one: Token, other: Token) -> bool:
    """Say whether one name may be made of the other ("France", "French"), or misspelt."""
    return one.norm[:_ROOT] == other.norm[:_ROOT] or is_one_slip(one.norm, other.norm)


_ROOT = 4
_NONE: frozenset[str] = frozenset()


def _only_words(c: Comparison) -> tuple[set[str], set[str]]:
    ones, others = c.only_marks()
    if c.one.language == "zh":
        return set(ones), set(others)
    return {t.norm for t in c.only_one} | ones, {t.norm for t in c.only_other} | others


def is_prefixed(word: str, root: str) -> bool:
    """Say whether a word is another with a prefix that denies it ("undo")."""
    return word.endswith(root) and any(
        word == prefix + root and len(root) > max(2, _LONGER - len(prefix)) for prefix in _PREFIXES
    )


_LONGER = 5  # letters of a prefixed word's root, less those of the prefix: not "a" + "lot"
