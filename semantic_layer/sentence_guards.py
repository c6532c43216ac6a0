"""Guards over how a text is built: who, to whom, when, what is asked, in what order. Pure."""

import re
from dataclasses import replace

from semantic_layer.edits import Comparison
from semantic_layer.finding import Finding, agreement, difference
from semantic_layer.script import fold
from semantic_layer.stemming import is_past_of

_SWAP_COVERAGE = 0.7


def person(c: Comparison) -> Finding | None:
    """It is about someone else's."""
    one, other = c.one.owners, c.other.owners
    if one and other and one.isdisjoint(other) and not _is_impersonal(c):
        return _of_persons(c, one, other)
    if c.one.language == "zh" or c.one.frame in {"what", "which", "who"} or _is_personal(c):
        one, other = c.one.persons, c.other.persons
        if one and other and one.isdisjoint(other):
            return _of_persons(c, one, other)
    return None


def _of_persons(c: Comparison, one: frozenset[str], other: frozenset[str]) -> Finding:
    """Report the persons; "you" and "I" are anyone where a question asks how, what or why."""
    is_anyone = one | other <= {"first", "second"} and bool(c.one.frame and c.other.frame)
    found = difference(c, one, other)
    return Finding(found.detail, True, agreement(c, _PRONOUNS, _PRONOUNS), is_anyone)


_PRONOUNS = frozenset("我咱俺你您他她们")


def roles(c: Comparison) -> Finding | None:
    """The same persons act and suffer the other way round."""
    one, other = c.one.roles, c.other.roles
    if one == other or len(one) == 1 or sorted(one) != sorted(other):
        return None
    return difference(c, [" ".join(one)], [" ".join(other)])


def tense(c: Comparison) -> Finding | None:
    """What happens became what happened."""
    for pair in c.pairs:
        one, other = (
            t.surface.casefold() for t in (c.one.tokens[pair.one], c.other.tokens[pair.other])
        )
        if pair.how == "same" and (is_past_of(one, other) or is_past_of(other, one)):
            found = difference(c, [one], [other])
            return replace(found, may_mean_nothing=c.one.is_passive != c.other.is_passive)
    return None


def scope(c: Comparison) -> Finding | None:
    """A word such as "only" stands before something else."""
    if c.order == "same":
        return None
    places = {pair.one: pair.other for pair in c.pairs}
    for i, token in enumerate(c.one.tokens[:-1]):
        is_scope = token.surface.casefold() in c.lexicon.classes.get("scope", ())
        if is_scope and i in places and places.get(i + 1) != places[i] + 1:
            return _turned(c, f"what {token.surface!r} goes with")
    return None


def asked(c: Comparison) -> Finding | None:
    """Another kind of thing is asked for (when, where, why …)."""
    one, other = c.one.frame, c.other.frame
    if one == other or {one, other} in _LIKE_FRAMES or not {one, other} <= _STRICT_FRAMES:
        return None
    found = difference(c, [one], [other])
    return replace(found, may_mean_nothing={one, other} in _NEAR_FRAMES)


_NEAR_FRAMES = ({"who", "where"}, {"who", "howmany"})
_STRICT_FRAMES = frozenset(
    {"why", "when", "where", "who", "howmany", "howmuch", "howlong", "howoften", "whose"}
)
_LIKE_FRAMES = (
    {"howlong", "howsoon"},
    {"howlong", "howmany"},
    {"howmany", "howmuch"},
    {"howlong", "when"},
)


def direction(c: Comparison) -> Finding | None:
    """The same words in another order, or in the same order with the roles exchanged.

    Only two things that changed places around what ties them, all else in its place, are certain.
    """
    if c.order != "same" and {c.one.role_asked, c.other.role_asked} == {"subject", "object"}:
        return _turned(c, "who does it and to whom", may_mean_nothing=True)
    if c.order == "same" and c.coverage >= _SWAP_COVERAGE and _is_one_passive(c):
        return _turned(c, "who does it and by whom", may_mean_nothing=True)
    if c.order != "swapped" or c.coverage < _SWAP_COVERAGE or _is_key_words(c):
        return None
    certain = c.is_exchange and c.one.frame == c.other.frame and _is_sentence(c)
    return _turned(c, "the same words in another order", may_mean_nothing=not certain)


def _is_sentence(c: Comparison) -> bool:
    """Say whether more than key words, which come in any order."""
    links = {token.norm for token in c.one.tokens if token.kind == "link"}
    return c.one.language == "zh" or bool(c.one.frame) or not _DIRECTED.isdisjoint(links)


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


def _turned(c: Comparison, detail: str, *, may_mean_nothing: bool = False) -> Finding:
    return Finding(detail, True, agreement(c, (), ()), may_mean_nothing)
