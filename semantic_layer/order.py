"""Whether what two texts share comes in the same order. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from semantic_layer.analysis import Analysis, Token

Order = Literal["same", "moved", "moved_bare", "swapped"]
How = Literal["same", "synonym", "joined", "typo", "derived"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Tokens that say the same: indices into both texts' tokens, and how they are alike."""

    one: int
    other: int
    how: How


def order_of(one: Analysis, other: Analysis, pairs: Iterable[Pair]) -> Order:
    """Tell whether what both say comes in the same order, with one block moved, or turned round."""
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
    if _is_coordinated(one.text, other.text, "".join(blocks[:turn]), "".join(blocks[turn:])):
        return "moved"
    used_one, used_other = {i for i, _ in by_one}, {j for _, j in by_one}
    movable = any(
        _is_movable(one.tokens, i, used_one) or _is_movable(other.tokens, j, used_other)
        for i, j in (places[0], places[turn])
    )
    return "moved" if movable else "moved_bare"


def is_exchange(one: Analysis, other: Analysis, pairs: Iterable[Pair]) -> bool:
    """Say whether two blocks changed places around a middle that ties them, all else in place.

    A middle of "and", "or", "vs" and the like ties both ways, so exchanging says nothing.
    """
    by_one = sorted({pair.one: pair.other for pair in pairs}.items())
    ranks = _ranks(by_one)
    start, end = _moved(ranks)
    middle = [rank - start for rank in ranks[start:end]]
    if not middle:
        return False
    first = middle.index(len(middle) - 1) + 1  # the block that came last there comes first here
    last = middle.index(0)
    tie = middle[first:last]
    if not tie or middle != [
        *range(len(middle) - first, len(middle)),
        *range(len(middle) - last, len(middle) - first),
        *range(len(middle) - last),
    ]:
        return False
    words = {one.tokens[by_one[start + i][0]].norm for i in range(first, last)}
    text = f"{one.text} {other.text}".casefold()
    return not words <= _BOTH_WAYS and not any(word in text for word in _TIES_BOTH)


_BOTH_WAYS = frozenset({"&", "vs", "versus", "and", "or", "between", "with"})
_TIES_BOTH = ("differ", "compar", " vs", "versus", "比较", "区别", "对比", "互")


def _ranks(by_one: Sequence[tuple[int, int]]) -> list[int]:
    """Return the place that each token shared with the other text has there."""
    wanted = sorted(j for _, j in by_one)
    return [wanted.index(j) for _, j in by_one]


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


def _is_coordinated(one: str, other: str, here: str, there: str) -> bool:
    """Say whether two Chinese blocks are only the sides of one "and" or "or"."""
    return any(
        f"{here}{sign}{there}" in one and f"{there}{sign}{here}" in other for sign in _AND_OR
    )


_AND_OR = ("和", "与", "跟", "或", "及", "还是", "或者", "、")
