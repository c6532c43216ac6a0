"""Guards over words that only the marks or the older forms of their letters tell apart. Pure."""

import unicodedata
from collections import Counter
from functools import cache

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.resources import load_lines
from semantic_layer.text.script import normalise, simplified, traditional
from semantic_layer.text.tongue import tongue_of

_OWN = "ñäöüåøß"  # letters of their own, not letters with an accent
_OTHER_WORDS = frozenset({  # in an English text an accent is left out otherwise ("jalapeno")
    "ano", "anos", "pena", "cana", "una", "mono", "sonar", "rose", "pate", "lame", "expose",
})  # fmt: skip
_VARIANTS = str.maketrans("裏麪麯", "裡麵麴")


def accents(c: Comparison) -> Finding | None:
    """Two words have the same letters, but not the same marks on them ("año", "ano")."""
    if c.one.text.isascii() and c.other.text.isascii():
        return None
    for a in c.only_one:
        for b in c.only_other:
            one, other = a.surface.casefold(), b.surface.casefold()
            if one != other and _bare(one) == _bare(other) and _are_two(one, other, c):
                return difference(c, [a.norm], [b.norm])
    return None


def _are_two(one: str, other: str, c: Comparison) -> bool:
    """Say whether both words may be meant: no text is simply typed without marks."""
    texts = (c.one.text, c.other.text)
    if "en" in map(tongue_of, texts):
        return _bare(one) in _OTHER_WORDS
    own = {sign for sign in _OWN if (sign in one) != (sign in other)}
    return bool(own) or not any(_is_bare(text) for text in texts)


def _bare(word: str) -> str:
    """Return a word without the marks on its letters."""
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word.replace("ø", "o").replace("ß", "ss"))
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


def _is_bare(text: str) -> bool:
    return _bare(text.casefold()) == text.casefold()


def forms(c: Comparison) -> Finding | None:
    """Characters that one simplified form stands for are not the same ("皇后", "皇後")."""
    texts = [normalise(side.text) for side in (c.one, c.other)]
    if c.one.language != "zh" or all(text == simplified(text) for text in texts):
        return None
    one, other = (_signs(text) for text in texts)
    left, right = one - other, other - one
    turned = {_groups()[sign] for sign in left} & {_groups()[sign] for sign in right}
    if not turned:
        return None
    here, there = ({s for s in signs if _groups()[s] in turned} for signs in (left, right))
    return difference(c, here, there)


def _signs(text: str) -> Counter[str]:
    """Count the characters of several meanings in their traditional forms."""
    return Counter(filter(_groups().get, traditional(text).translate(_VARIANTS)))


@cache
def _groups() -> dict[str, str]:
    """Return the characters that one simplified form stands for, by each of them."""
    return {sign: group for group in load_lines("characters.zh.txt") for sign in group}
