"""Whether what two texts share comes in the same order. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from semantic_layer.text.analysis import Analysis, Token

Order = Literal["same", "moved", "moved_bare", "swapped"]
How = Literal["same", "synonym", "sense", "joined", "typo", "derived"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Tokens that say the same: indices into both texts' tokens, and how they are alike."""

    one: int
    other: int
    how: How


def order_of(one: Analysis, other: Analysis, pairs: Iterable[Pair]) -> Order:
    """Tell whether what both say comes in the same order, with one block moved, or turned round."""
    pairs = [pair for pair in pairs if not _is_free_denial(one, other, pair)]
    by_one = sorted({pair.one: pair.other for pair in pairs}.items())
    ranks = _ranks(by_one)
    start, end = _moved(ranks)
    if start == end:
        return "same"
    middle = ranks[start:end]
    turn = middle.index(min(middle))
    if middle[turn:] + middle[:turn] != sorted(middle):
        return "swapped"
    places = by_one[start:end]
    blocks = [one.tokens[i].norm for i, _ in places]
    if _is_turned_list(one.text, other.text):
        return "same"
    here, there = "".join(blocks[:turn]), "".join(blocks[turn:])
    if _is_coordinated(one.text, other.text, here, there):
        return "moved" if _PERSON.search(here + there) else "same"
    used_one, used_other = {i for i, _ in by_one}, {j for _, j in by_one}
    movable = any(
        _is_movable(one.tokens, i, used_one) or _is_movable(other.tokens, j, used_other)
        for i, j in (places[0], places[turn])
    )
    return "moved" if movable else "moved_bare"


def _is_free_denial(one: Analysis, other: Analysis, pair: Pair) -> bool:
    """Say whether a question's "not" may stand with its verb or before it ("won't it start")."""
    if one.tokens[pair.one].norm != "not" or not (one.frame and other.frame):
        return False
    texts = f"{one.text} {other.text}".casefold()
    return one.num_negations == other.num_negations == 1 and not _COUNTS.search(texts)


_COUNTS = re.compile(
    r"\b(?:all|any|both|each|every\w*|some\w*|most|many|only|always|often|if|unless|but|and|or)\b"
)


def is_exchange(one: Analysis, other: Analysis, pairs: Iterable[Pair]) -> bool:
    """Say whether two blocks changed places around a middle that ties them, all else in place.

    A middle of "and", "or", "vs" and the like ties both ways, so exchanging says nothing.
    """
    tie = _tie(one, pairs)
    text = f"{one.text} {other.text}".casefold()
    return bool(tie) and not tie <= _BOTH_WAYS and not any(word in text for word in _TIES_BOTH)


def is_mutual(one: Analysis, other: Analysis, pairs: Iterable[Pair]) -> bool:
    """Say whether two places changed theirs where only what lies between them is asked for."""
    if not (_MUTUAL.search(one.text.casefold()) and _MUTUAL.search(other.text.casefold())):
        return False
    ends = [_ENDS.fullmatch(text.strip("?？ ")) for text in (one.text, other.text)]
    if all(ends):
        here, there = (match.groups() for match in ends if match)
        return (here[1], here[0], here[2]) == there
    return bool(_tie(one, pairs))


_ENDS = re.compile(
    r"从?([^到离和与距]{2,8})[到离和与距]([^到离和与距]{2,8}?)((?:之间)?的?(?:距离)?有?(?:多远|多少.*))"
)


_MUTUAL = re.compile(
    r"\bhow far (?:is|away|from)\b|\bdistance (?:between|from)\b|多远|距离|相距|一起"
    r"|\bhow (?:is|are) .*\bdifferent from\b"
)


def _tie(one: Analysis, pairs: Iterable[Pair]) -> frozenset[str]:
    """Return the words around which two blocks changed places, none if anything else moved."""
    by_one = sorted({pair.one: pair.other for pair in pairs}.items())
    ranks = _ranks(by_one)
    start, end = _moved(ranks)
    middle = [rank - start for rank in ranks[start:end]]
    if not middle:
        return frozenset()
    first = middle.index(len(middle) - 1) + 1  # the block that came last there comes first here
    last = middle.index(0)
    if not middle[first:last] or middle != [
        *range(len(middle) - first, len(middle)),
        *range(len(middle) - last, len(middle) - first),
        *range(len(middle) - last),
    ]:
        return frozenset()
    return frozenset(one.tokens[by_one[start + i][0]].norm for i in range(first, last))


_BOTH_WAYS = frozenset({"&", "vs", "versus", "and", "or", "between", "with"})
_TIES_BOTH = ("differ", "compar", " vs", "versus", "比较", "区别", "对比", "互")


def _ranks(by_one: Sequence[tuple[int, int]]) -> list[int]:
    """Return the place that each token shared with the other text has there."""
    ranks = [0] * len(by_one)
    for rank, k in enumerate(sorted(range(len(by_one)), key=lambda k: by_one[k][1])):
        ranks[k] = rank  # of two that share a place there ("log in", "login") the first comes first
    return ranks


def _moved(ranks: Sequence[int]) -> tuple[int, int]:
    """Return the borders of what does not stand in its place."""
    start, end = 0, len(ranks)
    while start < end and ranks[start] == start:
        start += 1
    while end > start and ranks[end - 1] == end - 1:
        end -= 1
    return start, end


def _is_movable(tokens: Sequence[Token], index: int, used: set[int]) -> bool:
    """Say whether a block that begins here may stand elsewhere: a link leads it, or a comma.

    A link before it counts when the other text has none: "capital of France", "France's capital".
    """
    if tokens[index].kind == "link" or tokens[index].free:
        return True
    before = index - 1
    return (
        before >= 0
        and before not in used
        and tokens[before].kind == "link"
        and tokens[before].norm != "to"
    )


def _is_turned_list(one: str, other: str) -> bool:
    """Say whether two English texts only name the sides of an "or" or "and" the other way round.

    An article or a comma before them tells where the first begins ("a fruit or a vegetable").
    """
    found = [_SIDES.fullmatch(text.casefold().rstrip(" ?.!")) for text in (one, other)]
    if not all(found):
        return False
    here, there = (match.groups() for match in found if match)
    return (here[0], here[2], here[1], here[3]) == there


_SIDES = re.compile(
    r"(.*?(?:,|\b(?:is|are)\b.*?\ban?\b)) ?(?:an? )?([\w-]+) (?:and|or) (?:an? )?([\w-]+)(.*)"
)


def _is_coordinated(one: str, other: str, here: str, there: str) -> bool:
    """Say whether two Chinese blocks are only the sides of one "and" or "or"."""
    return any(
        f"{here}{sign}{there}" in one and f"{there}{sign}{here}" in other for sign in _AND_OR
    )


_AND_OR = ("和", "与", "跟", "或", "及", "还是", "或者", "、")
_PERSON = re.compile(r"[我你您他她]")  # "我和他借钱" is no "他和我借钱"
