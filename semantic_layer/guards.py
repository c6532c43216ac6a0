"""Why two texts may need different answers: each guard vetoes with a reason, or is silent. Pure."""

import re
from collections import Counter
from collections.abc import Callable

from semantic_layer.edits import Comparison
from semantic_layer.likeness import are_counterparts
from semantic_layer.outcome import Reason
from semantic_layer.script import fold
from semantic_layer.stemming import is_past_of
from semantic_layer.writing import capitals, signs, whose

Guard = Callable[[Comparison], str | None]
_SWAP_COVERAGE = 0.7
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "de", "mis", "anti", "counter", "a")


def first_veto(comparison: Comparison) -> Reason | None:
    """Return the first guard's veto, or None when all are silent."""
    for name, guard in GUARDS.items():
        detail = guard(comparison)
        if detail is not None:
            return Reason(name, "veto", detail)
    return None


def language(c: Comparison) -> str | None:
    """The two are written in different languages."""
    if c.one.language == c.other.language:
        return None
    return f"{c.one.language} / {c.other.language}"


def payload(c: Comparison) -> str | None:
    """Code, URLs, addresses or quoted texts differ."""
    if c.one.codes != c.other.codes:
        return _differ(c.one.codes, c.other.codes)
    for here, there in ((c.one, c.other), (c.other, c.one)):
        text = fold(there.text)
        missing = [quote for quote in here.quotes if quote not in text]
        if missing and not _is_respelt(missing, c):
            return f"quoted only once: {missing[0][:60]!r}"
    return None


def numbers(c: Comparison) -> str | None:
    """Numbers, versions, dates or ordinals differ."""
    one, other = Counter(c.one.numbers), Counter(c.other.numbers)
    return None if one == other else _differ(sorted(one - other), sorted(other - one))


def negation(c: Comparison) -> str | None:
    """One text denies more often than the other."""
    one, other = c.one.num_negations, c.other.num_negations
    return None if one == other else f"{one} / {other} negations"


def polarity(c: Comparison) -> str | None:
    """A word became its opposite."""
    ones, others = _only_words(c)
    for a in sorted(ones):
        for b in sorted(others):
            is_prefixed = _is_prefixed(a, b) or _is_prefixed(b, a)
            if c.lexicon.are_opposites(a, b) or is_prefixed or are_counterparts(a, b):
                return f"{a} / {b}"
    return None


def exclusive(c: Comparison) -> str | None:
    """One member of a set became another (a weekday, a country, a unit …), or came in alone."""
    ones, others = _only_words(c)
    for a in sorted(ones):
        for b in sorted(others):
            if c.lexicon.shared_set(a, b) and not c.lexicon.are_synonyms(a, b):
                return f"{a} / {b}"
    for word in sorted(ones | others):
        if any(found.strict for found in c.lexicon.sets.get(word, ())):
            return f"{word} on one side only"
    return None


def person(c: Comparison) -> str | None:
    """It is about someone else's."""
    one, other = c.one.owners, c.other.owners
    if one and other and one.isdisjoint(other) and not _is_impersonal(c):
        return f"{'/'.join(sorted(one))} / {'/'.join(sorted(other))}"
    if c.one.language == "zh" or c.one.frame in {"what", "which", "who"} or _is_personal(c):
        one, other = c.one.persons, c.other.persons
        if one and other and one.isdisjoint(other):
            return f"{'/'.join(sorted(one))} / {'/'.join(sorted(other))}"
    return None


def roles(c: Comparison) -> str | None:
    """The same persons act and suffer the other way round."""
    one, other = c.one.roles, c.other.roles
    if one == other or len(one) == 1 or sorted(one) != sorted(other):
        return None
    return f"{'/'.join(one)} / {'/'.join(other)}"


def tense(c: Comparison) -> str | None:
    """What happens became what happened."""
    for pair in c.pairs:
        one, other = (
            t.surface.casefold() for t in (c.one.tokens[pair.one], c.other.tokens[pair.other])
        )
        if pair.how == "same" and (is_past_of(one, other) or is_past_of(other, one)):
            return f"{one} / {other}"
    return None


def scope(c: Comparison) -> str | None:
    """A word such as "only" stands before something else."""
    if c.order == "same":
        return None
    places = {pair.one: pair.other for pair in c.pairs}
    for i, token in enumerate(c.one.tokens[:-1]):
        is_scope = token.surface.casefold() in c.lexicon.classes.get("scope", ())
        if is_scope and i in places and places.get(i + 1) != places[i] + 1:
            return f"what {token.surface!r} goes with"
    return None


def names(c: Comparison) -> str | None:
    """Both texts name something the other does not."""
    one = [token.surface for token in c.only_one if token.name]
    other = [token.surface for token in c.only_other if token.name]
    return f"{one[0]} / {other[0]}" if one and other else None


def asked(c: Comparison) -> str | None:
    """Another kind of thing is asked for (when, where, why …)."""
    one, other = c.one.frame, c.other.frame
    if one == other or {one, other} in _LIKE_FRAMES or not {one, other} <= _STRICT_FRAMES:
        return None
    return f"{one} / {other}"


_STRICT_FRAMES = frozenset(
    {"why", "when", "where", "who", "howmany", "howmuch", "howlong", "howoften", "whose"}
)
_LIKE_FRAMES = (
    {"howlong", "howsoon"},
    {"howlong", "howmany"},
    {"howmany", "howmuch"},
    {"howlong", "when"},
)


def direction(c: Comparison) -> str | None:
    """The same words in another order, or in the same order with the roles exchanged."""
    if c.order != "same" and {c.one.role_asked, c.other.role_asked} == {"subject", "object"}:
        return "who does it and to whom"
    if c.order == "same" and c.coverage >= _SWAP_COVERAGE and _is_one_passive(c):
        return "who does it and by whom"
    if c.order != "swapped" or c.coverage < _SWAP_COVERAGE or _is_key_words(c):
        return None
    return "the same words in another order"


def _is_one_passive(c: Comparison) -> bool:
    by_one, by_other = (any(t.norm == "by" for t in side.tokens) for side in (c.one, c.other))
    return by_one != by_other and c.one.is_passive != c.other.is_passive


_DIRECTED = frozenset({"from", "to", "into", "onto", "than", "vs", "versus", "by", "over", "under"})


def _is_key_words(c: Comparison) -> bool:
    """Say whether one text only strings together what the other ties with "of", "in", "for"."""
    one, other = (
        [token.norm for token in side.tokens if token.kind == "link"] for side in (c.one, c.other)
    )
    return (
        c.one.language == "en"
        and len(one) != len(other)
        and not (c.one.frame or c.other.frame)
        and _DIRECTED.isdisjoint([*one, *other])
    )


GUARDS: dict[str, Guard] = {
    "language": language,
    "payload": payload,
    "numbers": numbers,
    "signs": signs,
    "capitals": capitals,
    "whose": whose,
    "negation": negation,
    "polarity": polarity,
    "exclusive": exclusive,
    "person": person,
    "roles": roles,
    "tense": tense,
    "scope": scope,
    "names": names,
    "asked": asked,
    "direction": direction,
}


def _only_words(c: Comparison) -> tuple[set[str], set[str]]:
    ones, others = c.only_marks()
    if c.one.language == "zh":
        return set(ones), set(others)
    return {t.norm for t in c.only_one} | ones, {t.norm for t in c.only_other} | others


def _is_prefixed(word: str, root: str) -> bool:
    return len(root) > 2 and any(word == prefix + root for prefix in _PREFIXES)  # noqa: PLR2004


_SELF = re.compile(r"\b(?:am i|are you|i am|i'm|you are|you're|was i|were you)\b")


def _is_personal(c: Comparison) -> bool:
    """Say whether it is something each is or does for himself ("how do you feel")."""
    personal = c.lexicon.classes["personal"]
    return any(token.norm in personal for token in c.one.tokens) or (
        c.one.frame != "how" and bool(_SELF.search(fold(c.one.text)))
    )


def _is_impersonal(c: Comparison) -> bool:
    """Say whether each text is about its own subject throughout ("you … your", "I … my")."""
    return c.one.owners <= c.one.persons and c.other.owners <= c.other.persons


def _is_respelt(missing: list[str], c: Comparison) -> bool:
    """Say whether the words of the missing quotes have counterparts all the same."""
    left = {t.surface.casefold() for t in (*c.only_one, *c.only_other)}
    if c.one.language == "zh":
        return not any(sign in quote for sign in left for quote in missing)
    return all(left.isdisjoint(quote.split()) for quote in missing)


def _differ(one: object, other: object) -> str:
    return f"{one} / {other}"[:120]
