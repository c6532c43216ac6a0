"""Whether two answers say the same. Pure; undecided is an honest outcome.

Answers that are typed alike are the same. Short ones that differ in a number, a name, a denial or
an opposite are not. Between them a probability decides, given from outside, and only far from the
middle. Long answers vary in much that does not matter, so their differences prove nothing.
"""

import re
from dataclasses import dataclass

from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import first_veto
from semantic_layer.text.analysis import analyse
from semantic_layer.text.likeness import KnowsWord
from semantic_layer.text.script import normalise

SHORT_CHARS = 300
LONG_CHARS = 1500
SURELY_SAME = 0.95
_HARD = frozenset({"language", "payload", "numbers", "negation", "polarity", "exclusive", "names"})
_MARKS = ".,;:!?\"'()*。，；：！？、“”‘’"
_HEAD = re.compile(rf"[\s{re.escape(_MARKS)}]+")
_SIGNED = re.compile(r"(?<![\w)])[-+](?=\d)")
_YES = frozenset({"yes", "yep", "yeah", "true", "correct", "是", "是的", "对", "对的", "可以"})
_NO = frozenset({"no", "nope", "false", "incorrect", "不", "不是", "不对", "否", "不可以"})


@dataclass(frozen=True, slots=True)
class Equality:
    """``same`` is None when it could not be told; ``method`` is how it was, or why it wasn't."""

    same: bool | None
    method: str


UNDECIDED = Equality(None, "undecided")


def compare_answers(one: str, other: str, knows_word: KnowsWord | None = None) -> Equality:
    """Compare what is written; `UNDECIDED` when only a probability could tell."""
    found = _as_typed(one, other)
    if found is not None:
        return found
    longest = max(len(one), len(other))
    if longest > LONG_CHARS:
        return Equality(None, "too long")
    veto = first_veto(compare(analyse(normalise(one)), analyse(normalise(other)), knows_word))
    if veto is None:
        return UNDECIDED
    is_other = longest <= SHORT_CHARS and veto.check in _HARD
    return Equality(False if is_other else None, f"guards: {veto.check}")


def _as_typed(one: str, other: str) -> Equality | None:
    """Compare the characters, and what each says first of all; None when that does not tell."""
    plain_one, plain_other = normalise(one), normalise(other)
    if one == other:
        return Equality(True, "exact")
    if not plain_one or not plain_other:
        return Equality(None, "empty")
    is_code = _is_code(one) or _is_code(other)
    if plain_one == plain_other or (not is_code and _bare(plain_one) == _bare(plain_other)):
        return Equality(True, "normalised")
    if _SIGNED.findall(plain_one) != _SIGNED.findall(plain_other):
        return Equality(False, "signs of numbers")
    heads = _says_yes(plain_one), _says_yes(plain_other)
    if None not in heads and heads[0] != heads[1]:
        return Equality(False, "yes or no")
    return None


def by_score(score: float) -> Equality:
    """Decide by the probability (0..1) that the answers say the same, guards being silent."""
    return Equality(True, "score") if score >= SURELY_SAME else UNDECIDED


def _is_code(text: str) -> bool:
    """Say whether case and every mark may matter."""
    return any(sign in text for sign in "`{}[]<>=\\|^$#~_")


def _bare(text: str) -> str:
    """Return the words without case and the marks around them."""
    return " ".join(filter(None, (word.strip(_MARKS) for word in text.casefold().split())))


def _says_yes(text: str) -> bool | None:
    """Return what an answer begins with, when that is a yes or a no."""
    head = _HEAD.split(text.casefold(), maxsplit=1)[0]
    return True if head in _YES else False if head in _NO else None
