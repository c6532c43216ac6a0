"""Whether two words that are not equal may still be one: misspelt, or of one root. Pure."""

from collections.abc import Callable
from functools import lru_cache

from semantic_layer.text.analysis import Token
from semantic_layer.text.lexicon import Lexicon

KnowsWord = Callable[[str], bool]

_MIN_TYPO_LETTERS = 4
_MIN_SHARED_LETTERS = 5
_DERIVED_SHARE = 0.6
_LONG_NAME = 8


def is_typo(
    one: Token, other: Token, lexicon: Lexicon, knows_word: KnowsWord | None = None
) -> bool:
    """Say whether two words are one, misspelt: a single slip of the fingers.

    One of them must be a real word and the other not: two words nobody knows ("nitrate",
    "nitrite") are two words.
    """
    a, b = one.surface.casefold(), other.surface.casefold()
    if min(len(a), len(b)) < _MIN_TYPO_LETTERS or not (a.isalpha() and b.isalpha()):
        return False
    if a[0] != b[0] or not is_one_slip(a, b) or are_counterparts(a, b):
        return False
    if one.name and other.name:
        return (one.norm in lexicon.sets) != (other.norm in lexicon.sets) and len(
            a
        ) > _MIN_SHARED_LETTERS
    if knows_word is None:
        return sorted(a) == sorted(b) and min(len(a), len(b)) > _MIN_SHARED_LETTERS
    return _is_known(a, knows_word) != _is_known(b, knows_word)


def _is_known(word: str, knows_word: KnowsWord) -> bool:
    """Say whether a word is real, or made of a real one ("unsubscribe")."""
    return knows_word(word) or any(
        knows_word(word.removeprefix(prefix))
        for prefix in ("un", "re", "dis")
        if word.startswith(prefix) and len(word) > len(prefix) + _MIN_SHARED_LETTERS
    )


def is_derived(one: Token, other: Token, lexicon: Lexicon) -> bool:
    """Say whether two words share their root ("formation", "form")."""
    a, b = one.norm, other.norm
    if not (a.isascii() and b.isascii() and a.isalpha() and b.isalpha()):
        return False
    shared, shorter, longer = _shared_letters(a, b), *sorted((len(a), len(b)))
    if shared < min(_MIN_SHARED_LETTERS, shorter):
        return False
    if a[shared:] and b[shared:] and a[-1] == b[-1]:
        return False  # letters put in between make another word ("prednisone", "prednisolone")
    is_turned = are_counterparts(one.surface.casefold(), other.surface.casefold())
    if is_turned or lexicon.are_opposites(a, b) or lexicon.shared_set(a, b):
        return False
    is_ending = shorter >= _MIN_TYPO_LETTERS and (
        shared >= shorter - 1 and shared >= _DERIVED_SHARE * longer
    )
    return is_ending or (
        shared == shorter >= _MIN_TYPO_LETTERS and longer - shorter <= _MIN_SHARED_LETTERS
    )


@lru_cache(maxsize=65_536)
def are_counterparts(a: str, b: str) -> bool:
    """Say whether two words differ in a prefix or ending that turns them round ("micro-")."""
    if a[-2:] != b[-2:] and a[:1] != b[:1]:
        return False  # they share neither an ending behind the prefixes nor a beginning
    return any(
        a == here + b.removeprefix(there) and b.startswith(there) and len(a) > len(here) + 1
        for one, other in _PREFIX_PAIRS
        for here, there in ((one, other), (other, one))
    ) or any(
        a.endswith(here) and b == a.removesuffix(here) + there
        for one, other in _ENDING_PAIRS
        for here, there in ((one, other), (other, one))
    )


_PREFIX_PAIRS = (
    ("macro", "micro"), ("hyper", "hypo"), ("inter", "intra"), ("endo", "exo"), ("in", "de"),
    ("pre", "post"), ("over", "under"), ("up", "down"), ("in", "ex"), ("im", "ex"), ("im", "e"),
    ("homo", "hetero"), ("maxi", "mini"), ("en", "de"), ("as", "des"), ("inner", "outer"),
)  # fmt: skip
_ENDING_PAIRS = (("er", "ee"), ("or", "ee"), ("ful", "less"))


def is_one_slip(a: str, b: str) -> bool:
    """Say whether a letter left out, put in, or exchanged with its neighbour leads over.

    A letter in place of another does not: so "methanol" becomes "methanal". Nor does a final "s".
    """
    if len(a) == len(b):
        return any(a == b[:i] + b[i + 1] + b[i] + b[i + 2 :] for i in range(len(b) - 1))
    short, long = sorted((a, b), key=len)
    if len(long) - len(short) != 1 or long == f"{short}s":
        return False
    return any(short == long[:i] + long[i + 1 :] for i in range(len(long)))


def is_misspelt_name(one: str, other: str) -> bool:
    """Say whether a long name lost, gained or turned a letter, which a verifier can read."""
    return min(len(one), len(other)) >= _LONG_NAME and is_one_slip(one, other)


def _shared_letters(a: str, b: str) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
