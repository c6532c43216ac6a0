"""What is asked of one thing: which act of git, the k-th of some or k of them. Pure."""

import re

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.text.script import fold
from semantic_layer.text.stemming import stem


def git_act(c: Comparison) -> Finding | None:
    """One asks of an act of git, the other of another ("undo a git add", "undo a git commit")."""
    one, other = _git_acts(c.one.text), _git_acts(c.other.text)
    lone, others = one - other, other - one
    return difference(c, lone, others) if lone and others else None


def _git_acts(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z]+", fold(text)) if "git" in text.casefold() else []
    return _GIT_ACTS.intersection(map(stem, words)) if "git" in words else frozenset()


_GIT_ACTS = frozenset(
    map(stem, ("add", "commit", "push", "pull", "merge", "rebase", "stash", "fetch", "clone"))
)


def rank(c: Comparison) -> Finding | None:
    """One asks for the k-th of some, the other for k of them."""
    one, other = _rank(c.one.text), _rank(c.other.text)
    return difference(c, {one}, {other}) if one and other and one != other else None


def _rank(text: str) -> str:
    plain = fold(text)
    if _PLACE.search(plain):
        return "k-th"
    return "k" if _NUMBER.search(plain) else ""


_PLACE = re.compile(r"\b[kn][ -]?th\b|第 ?[kn](?![a-z])")
_NUMBER = re.compile(
    r"\b[kn] \w*(?:est|most|least)\b|\b(?:top|first|last) [kn]\b|前 ?[kn](?![a-z])"
)
