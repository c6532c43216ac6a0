"""Whether two answers say the same. Pure; undecided is an honest outcome.

Answers that are typed alike are the same. Short ones that say nearly the same words but for a
number, a name, a denial or an opposite are not. Between them a probability decides, given from
outside, and only far from the middle. Long answers vary in much that does not matter, so their
differences prove nothing; nor does what differs from call to call (`call_marks`), what only one of
them tells, or what stands among other words: one model says one thing in many ways.
"""

import re
from dataclasses import dataclass

from semantic_layer.comparison.call_marks import without_call_marks
from semantic_layer.comparison.edits import Comparison, compare
from semantic_layer.comparison.finding import Finding
from semantic_layer.comparison.guards import Rule, findings
from semantic_layer.text.analysis import analyse
from semantic_layer.text.likeness import KnowsWord
from semantic_layer.text.script import normalise

SHORT_CHARS = 300
LONG_CHARS = 1500
SURELY_SAME = 0.95
_HARD = frozenset({"language", "payload", "numbers", "negation", "polarity", "exclusive", "names"})
_LIKE_WORDED = 0.85  # of what else is said; one model's two wordings of one thing share up to .8
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
    """Compare what is written; `UNDECIDED` when only a probability could tell.

    Answers that bear different marks of their calls are never called the same: such a mark may be
    the answer ("What is the SHA-1 of …?").
    """
    if max(len(one), len(other)) > LONG_CHARS:  # not worth the search for marks
        return _compared(one, other, knows_word)
    (plain_one, marks_one), (plain_other, marks_other) = map(without_call_marks, (one, other))
    if marks_one == marks_other:
        return _compared(one, other, knows_word)
    found = _compared(plain_one, plain_other, knows_word)
    return found if found.same is False else Equality(None, "marks of calls")


def _compared(one: str, other: str, knows_word: KnowsWord | None) -> Equality:
    found = _as_typed(one, other)
    if found is not None:
        return found
    longest = max(len(one), len(other))
    if longest > LONG_CHARS:
        return Equality(None, "too long")
    first, second = (analyse(_unheaded(normalise(text))) for text in (one, other))
    comparison = compare(first, second, knows_word)
    found_by = list(findings(comparison))
    if not found_by:
        return UNDECIDED
    telling = [check for check, rule, it in found_by if _tells(check, rule, it, comparison)]
    if telling and longest <= SHORT_CHARS:
        return Equality(False, f"guards: {telling[0]}")
    return Equality(None, f"guards: {found_by[0][0]}")


def _tells(check: str, rule: Rule, finding: Finding, comparison: Comparison) -> bool:
    """Say whether a difference is between what two answers say, and not how they say it."""
    if check not in _HARD or not rule.is_certain(finding):
        return False
    if check == "negation":
        denied = (comparison.one.num_negations, comparison.other.num_negations)
        return 0 in denied and sum(denied) % 2 == 1
    return finding.exchanged and finding.agreement >= _LIKE_WORDED


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
        is_all = _bare(_SIGNED.sub("", plain_one)) == _bare(_SIGNED.sub("", plain_other))
        return Equality(False if is_all else None, "signs of numbers")
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


def _unheaded(text: str) -> str:
    """Return an answer without the yes or no before what it says in words."""
    parts = _HEAD.split(text, maxsplit=1)
    is_head = len(parts) > 1 and parts[1] and _says_yes(text) is not None
    return parts[1] if is_head else text


def _says_yes(text: str) -> bool | None:
    """Return what an answer begins with, when that is a yes or a no."""
    head = _HEAD.split(text.casefold(), maxsplit=1)[0]
    return True if head in _YES else False if head in _NO else None
