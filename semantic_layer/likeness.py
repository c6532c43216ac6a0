"""Whether two words that are not equal may still be one: misspelt, or of one root. Pure."""

from collections.abc import Callable

from semantic_layer.analysis import Token
from semantic_layer.lexicon import Lexicon

KnowsWord = Callable[[str], bool]

_MIN_TYPO_LETTERS = 4
_MIN_SHARED_LETTERS = 5
_DERIVED_SHARE = 0.6


def is_typo(
    one: Token, other: Token, lexicon: Lexicon, knows_word: KnowsWord | None = None
) -> bool:
    """Say whether two words are one, misspelt: a single slip of the fingers, not two real words."""
    a, b = one.surface.casefold(), other.surface.casefold()
    if min(len(a), len(b)) < _MIN_TYPO_LETTERS or not (a.isalpha() and b.isalpha()):
        return False
    if not _one_slip(a, b) or a == f"a{b}" or b == f"a{a}" or are_counterparts(a, b):
        return False
    if one.name and other.name:
        return (one.norm in lexicon.sets) != (other.norm in lexicon.sets) and len(
            a
        ) > _MIN_SHARED_LETTERS
    if knows_word is None:
        return sorted(a) == sorted(b) and min(len(a), len(b)) > _MIN_SHARED_LETTERS
    return not (knows_word(a) and knows_word(b))


def is_derived(one: Token, other: Token, lexicon: Lexicon) -> bool:
    """Say whether two words share their root ("formation", "form")."""
    a, b = one.norm, other.norm
    if not (a.isascii() and b.isascii() and a.isalpha() and b.isalpha()):
        return False
    is_turned = are_counterparts(one.surface.casefold(), other.surface.casefold())
    if is_turned or lexicon.are_opposites(a, b) or lexicon.shared_set(a, b):
        return False
    shared, shorter, longer = _shared_letters(a, b), *sorted((len(a), len(b)))
    if shared < min(_MIN_SHARED_LETTERS, shorter):
        return False
    is_ending = shared >= shorter - 1 and shared >= _DERIVED_SHARE * longer
    return is_ending or (
        shared == shorter >= _MIN_TYPO_LETTERS and longer - shorter <= _MIN_SHARED_LETTERS
    )


def are_counterparts(a: str, b: str) -> bool:
    """Say whether two words differ in a prefix or ending that turns them round ("micro-")."""
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


def _one_slip(a: str, b: str) -> bool:
    """Say whether one insertion, deletion, substitution or exchange of neighbours leads over."""
    if a == b or abs(len(a) - len(b)) > 1:
        return a == b
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    rest_a, rest_b = a[start:], b[start:]
    if len(rest_a) == len(rest_b):
        exchanged = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
        return exchanged or rest_a[1:] == rest_b[1:]
    return rest_a[1:] == rest_b or rest_a == rest_b[1:]


def _shared_letters(a: str, b: str) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
