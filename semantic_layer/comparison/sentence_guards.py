"""Guards over how a text is built: who, to whom, when, what is asked, in what order. Pure."""

import re
from dataclasses import replace

from semantic_layer.comparison.chinese_order import is_fronted
from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, agreement, difference
from semantic_layer.text.analysis import Analysis, Role
from semantic_layer.text.script import fold
from semantic_layer.text.stemming import is_past, is_past_of

_SWAP_COVERAGE = 0.7
_SURELY_TURNED = 0.95
_MOST_TURNED = 16  # content tokens; in longer statements verifiers overlook who does what


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
        is_else = is_past_of(one, other) or is_past_of(other, one) or _goes_on(c, one, other)
        if pair.how == "same" and _is_habit(c, one, other):
            return replace(difference(c, [one], [other]), is_firm=True)
        if pair.how == "same" and is_else:
            found = difference(c, [one], [other])
            return replace(found, may_mean_nothing=c.one.is_passive != c.other.is_passive)
    return None


def _goes_on(c: Comparison, one: str, other: str) -> bool:
    """Say whether who did it is asked of those who are doing it, or the other way round."""
    asks = c.one.frame == c.other.frame and c.one.frame in {"who", "which", "what"}
    if not asks or c.order != "same" or c.coverage < 1.0:
        return False
    doing, done = (one, other) if one.endswith("ing") else (other, one)
    return doing.endswith("ing") and is_past(done)


def _is_habit(c: Comparison, one: str, other: str) -> bool:
    """Say whether what is going on is asked of as what happens ("is it raining")."""
    if {c.one.frame, c.other.frame} != {"yesno"} or one.endswith("ing") == other.endswith("ing"):
        return False
    going, usual = (c.one, c.other) if one.endswith("ing") else (c.other, c.one)
    return bool(_GOING_ON.match(fold(going.text)) and _USUAL.match(fold(usual.text)))


_GOING_ON = re.compile(r"(?:is|are|am|was|were) (?!\w+ing\b)")
_USUAL = re.compile(r"(?:do|does|did) ")


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
    is_strict = {one, other} <= _STRICT_FRAMES or {one, other} == {"why", "outcome"}
    if one == other or {one, other} in _LIKE_FRAMES or not is_strict:
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
        found = _turned(c, "who does it and to whom", may_mean_nothing=True)
        return replace(found, is_firm=c.coverage >= _SURELY_TURNED)
    sides = ((c.one, c.other), (c.other, c.one))
    if any(_is_by_whom(*side, "subject") for side in sides):
        return None
    if any(_is_by_whom(*side, "object") for side in sides):
        return replace(_turned(c, "who does it and by whom"), is_firm=True)
    if c.order == "same" and c.coverage >= _SWAP_COVERAGE and _is_one_passive(c):
        return _turned(c, "who does it and by whom", may_mean_nothing=True)
    if c.order != "swapped" or c.coverage < _SWAP_COVERAGE or _is_free_order(c):
        return None
    certain = c.is_exchange and c.one.frame == c.other.frame and _is_sentence(c)
    found = _turned(c, "the same words in another order", may_mean_nothing=not certain)
    return replace(found, is_firm=c.num_matched > _MOST_TURNED or _turns_numbers(c))


def _is_free_order(c: Comparison) -> bool:
    """Say whether the same is asked whatever comes first."""
    return _is_key_words(c) or c.is_mutual or is_fronted(c)


def _turns_numbers(c: Comparison) -> bool:
    """Say whether numbers stand with other things than in the other text ("2 cats and 3 dogs")."""
    one, other = ([t.norm for t in s.tokens if t.kind == "number"] for s in (c.one, c.other))
    return one != other


def _is_by_whom(active: Analysis, passive: Analysis, role: Role) -> bool:
    """Say whether one asks who or whom, the other by whom ("it was written by whom")."""
    asks = active.role_asked == role and {active.frame, passive.frame} == {"who"}
    return asks and bool(_BY_WHOM.search(fold(passive.text)))


_BY_WHOM = re.compile(
    r"\b(?:was|were|is|are) .*\bby whom?$|^by whom |^whom? (?:was|were|is|are) .* by$"
)


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
