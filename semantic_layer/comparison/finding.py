"""A difference that a guard found, and how much of the two texts stands around it. Pure."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from semantic_layer.comparison.edits import Comparison
from semantic_layer.text.analysis import Token


@dataclass(frozen=True, slots=True)
class Finding:
    """What differs, in words.

    ``exchanged`` says that each text has its own ("7 am", "7 pm"); else one text has it and the
    other is silent ("on Sunday", nothing). ``agreement`` is the share of all other content words
    that both texts have, 0..1: the higher, the surer that the difference is the point.
    ``may_mean_nothing`` where the guard knows that rewordings differ so too, whatever agrees;
    ``is_firm`` where it knows that a verifier overlooks such a difference.
    """

    detail: str
    exchanged: bool
    agreement: float
    may_mean_nothing: bool = False
    is_firm: bool = False


Guard = Callable[[Comparison], Finding | None]


def exchange(c: Comparison, one: str, other: str, *, may_mean_nothing: bool = False) -> Finding:
    """Report that ``one`` stands where the other text has ``other``."""
    return Finding(_differ(one, other), True, agreement(c, {one}, {other}), may_mean_nothing)


def addition(
    c: Comparison, words: Collection[str], detail: str, *, may_mean_nothing: bool = False
) -> Finding:
    """Report words that only one text has."""
    return Finding(detail[:_LONGEST], False, agreement(c, words, words), may_mean_nothing)


def difference(
    c: Comparison, one: Collection[str], other: Collection[str], *, exchanged: bool | None = None
) -> Finding:
    """Report the words of each side, either of which may be none."""
    return Finding(
        _differ("/".join(sorted(one)) or "none", "/".join(sorted(other)) or "none"),
        bool(one and other) if exchanged is None else exchanged,
        agreement(c, one, other),
    )


def is_like_built(c: Comparison) -> bool:
    """Say whether both ask the same kind of thing in the same order."""
    return c.order == "same" and c.one.frame == c.other.frame


def agreement(c: Comparison, one: Collection[str], other: Collection[str]) -> float:
    """Return the share of content words with a counterpart, those in question left out."""
    left_one = sum(not _is_part(token, one) for token in c.only_one)
    left_other = sum(not _is_part(token, other) for token in c.only_other)
    matched = 2 * c.num_matched
    total = matched + left_one + left_other
    return matched / total if total else 1.0


def _is_part(token: Token, words: Collection[str]) -> bool:
    """Say whether a token is one of the words, or a character of one that is Chinese."""
    return token.norm in words or (
        not token.norm.isascii() and any(token.norm in word for word in words)
    )


def _differ(one: object, other: object) -> str:
    return f"{one} / {other}"[:_LONGEST]


_LONGEST = 120
