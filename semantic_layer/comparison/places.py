"""Places that have several names, and names that another word makes another's. Pure."""

import re
from functools import cache

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, addition
from semantic_layer.text.analysis import Analysis, Token, analyse
from semantic_layer.text.lexicon import english
from semantic_layer.text.script import fold

_QUALIFYING = frozenset({
    "north", "south", "east", "west", "northern", "southern", "eastern",
    "western", "central", "upper", "lower", "inner", "outer", "greater",
    "new", "city", "county", "state", "province", "island", "republic",
    "territory", "district", "metropolitan",
})  # fmt: skip


def qualified(c: Comparison) -> Finding | None:
    """One names a place by a name that is part of the other's ("Salford", "Salford City")."""
    if c.one.language == "zh" or bool(c.only_one) == bool(c.only_other):
        return None
    side = c.one if c.only_one else c.other
    lone = c.only_one or c.only_other
    for i, token in enumerate(side.tokens):
        if token in lone and token.surface.casefold() in _QUALIFYING and _names(side, token, i):
            return addition(c, {token.norm}, f"{token.surface} on one side only")
    return None


def _names(side: Analysis, token: Token, i: int) -> bool:
    """Say whether a qualifying word stands beside a name, without a break between them."""
    before, after = side.tokens[max(0, i - 1) : i], side.tokens[i + 1 : i + 2]
    is_last = bool(before) and before[0].name and not token.free
    is_first = bool(after) and after[0].name and not after[0].free
    is_first = is_first and not _is_asked_of(side.text, token)
    return is_first or (is_last and token.name)


def _is_asked_of(text: str, token: Token) -> bool:
    """Say whether a verb follows a word, which so belongs to no name ("which city is Oslo")."""
    pattern = rf"\b{re.escape(token.surface)} (?:is|are|was|were|does|did|has)\b"
    return bool(re.search(pattern, fold(text)))


def share_renamed(one: str, other: str) -> bool:
    """Say whether both texts name one place that has several names ("PRC", "China").

    A model that reads each text alone may put two such names far apart. English only: Chinese
    texts are written with one name before they are read. The second is read only where the first
    names such a place, which few do.
    """
    here = _renamed_in(one)
    return bool(here) and not here.isdisjoint(_renamed_in(other))


def _renamed_in(text: str) -> set[str]:
    names = _renamed()
    return {token.norm for token in analyse(text).tokens if token.norm in names}


@cache
def _renamed() -> frozenset[str]:
    names = english().places.items()
    return frozenset(name for alias, (name, _) in names if alias != name)
