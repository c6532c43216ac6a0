"""Guards over single words: numbers, negations, opposites, members of sets, names. Pure."""

from collections import Counter

from semantic_layer.edits import Comparison
from semantic_layer.finding import Finding, addition, difference, exchange
from semantic_layer.likeness import are_counterparts

_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "de", "mis", "anti", "counter", "a")


def numbers(c: Comparison) -> Finding | None:
    """Numbers, versions, dates or ordinals differ."""
    one, other = Counter(c.one.numbers), Counter(c.other.numbers)
    if one == other:
        return None
    return difference(c, set(one - other), set(other - one))


def negation(c: Comparison) -> Finding | None:
    """One text denies more often than the other."""
    one, other = c.one.num_negations, c.other.num_negations
    if one == other:
        return None
    words = c.lexicon.classes["negation"]
    return addition(c, words, f"{one} / {other} negations")


def polarity(c: Comparison) -> Finding | None:
    """A word became its opposite."""
    ones, others = _only_words(c)
    for a in sorted(ones):
        for b in sorted(others):
            if c.lexicon.are_opposites(a, b) or _are_turned(a, b):
                return exchange(c, a, b)
    return None


def _are_turned(a: str, b: str) -> bool:
    return is_prefixed(a, b) or is_prefixed(b, a) or are_counterparts(a, b)


def exclusive(c: Comparison) -> Finding | None:
    """One member of a set became another (a weekday, a country, a unit …), or came in alone."""
    ones, others = _only_words(c)
    for a in sorted(ones):
        for b in sorted(others):
            if c.lexicon.shared_set(a, b) and not c.lexicon.are_synonyms(a, b):
                return exchange(c, a, b)
    for word in sorted(ones | others):
        if any(found.strict for found in c.lexicon.sets.get(word, ())):
            return addition(c, {word}, f"{word} on one side only")
    return None


def names(c: Comparison) -> Finding | None:
    """Both texts name something the other does not."""
    one = [token for token in c.only_one if token.name]
    other = [token for token in c.only_other if token.name]
    if not (one and other):
        return None
    found = difference(c, {t.norm for t in one}, {t.norm for t in other})
    return Finding(f"{one[0].surface} / {other[0].surface}", True, found.agreement)


def _only_words(c: Comparison) -> tuple[set[str], set[str]]:
    ones, others = c.only_marks()
    if c.one.language == "zh":
        return set(ones), set(others)
    return {t.norm for t in c.only_one} | ones, {t.norm for t in c.only_other} | others


def is_prefixed(word: str, root: str) -> bool:
    """Say whether a word is another with a prefix that denies it ("undo")."""
    return len(root) > 2 and any(word == prefix + root for prefix in _PREFIXES)  # noqa: PLR2004
