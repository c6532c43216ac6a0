"""Guards over how much is meant: at least or at most, all or some, most or more, not yet or over.

Knows the words of English and Chinese that say so, and looks at no others. Pure.
"""

import re
from itertools import product

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.text.analysis import Analysis
from semantic_layer.text.chinese import unified
from semantic_layer.text.script import normalise

_NUMBER = (
    r"(?=\W*(?:about |roughly )?[$£€¥]?"
    r"(?:\d|two|three|four|five|six|seven|eight|nine|ten|an?\b))"
)
_BOUNDS = {
    "at least": re.compile(
        rf"\b(?:at least|minimum(?: of)?|no less than|no fewer than|more than|over|above){_NUMBER}"
        r"|\b\d+ or (?:more|older|over|above)\b|\d\+"
        r"|至少|起码|最少|不少于|不低于|多于|大于|超过|\d[^\s\d]{0,4}以上"
    ),
    "at most": re.compile(
        r"\b(?:at most|maximum(?: of)?|no more than|not more than|up to|within|less than"
        rf"|fewer than|under|below){_NUMBER}|\b\d+ or (?:less|fewer|younger|under|below)\b"
        r"|至多|最多|不多于|不超过|少于|小于|不到|\d[^\s\d]{0,4}(?:以[内下]|之内)"
    ),
    "exactly": re.compile(rf"\bexactly{_NUMBER}|刚好|正好|恰好"),
}
_ALL = re.compile(r"所有|全部|一切|每一?[个只种]|凡是")
_SOME = re.compile(r"有没有|有[的些]|有一些|部分|某些|某个|一些")
_MOST, _MORE = re.compile(r"最"), re.compile(r"较|更")


def bounds(c: Comparison) -> Finding | None:
    """A number is the least in one text and the most in the other, or just that."""
    one, other = (_bounds_of(side) for side in (c.one, c.other))
    if one == other:
        return None
    return difference(c, one - other, other - one)


def _bounds_of(side: Analysis) -> frozenset[str]:
    if not side.numbers:
        return frozenset()
    plain = normalise(side.text).casefold()
    return frozenset(name for name, pattern in _BOUNDS.items() if pattern.search(plain))


def quantity(c: Comparison) -> Finding | None:
    """All are asked of in one text, some in the other; or the most of all, and merely more."""
    if c.one.language != "zh":
        return _degree(c)
    texts = [unified(normalise(side.text)) for side in (c.one, c.other)]
    for strong, weak in ((_ALL, _SOME), (_MOST, _MORE)):
        one, other = ((bool(strong.search(t)), bool(weak.search(t))) for t in texts)
        if {one, other} == {(True, False), (False, True)}:
            found = [
                (strong if said[0] else weak).findall(t)
                for said, t in zip((one, other), texts, strict=True)
            ]
            return difference(c, found[0][:1], found[1][:1])
    return None


def _degree(c: Comparison) -> Finding | None:
    """Find "tallest" where the other text has "taller"."""
    derived = [(c.one.tokens[p.one], c.other.tokens[p.other]) for p in c.pairs if p.how != "same"]
    for a, b in (*derived, *product(c.only_one, c.only_other)):
        one, other = sorted((a.surface.casefold(), b.surface.casefold()), key=len)
        if one.endswith("er") and other == f"{one.removesuffix('er')}est":
            return difference(c, [a.surface], [b.surface])
    return None


def modality(c: Comparison) -> Finding | None:
    """Whether it should be is asked in one English text, whether it may or must in the other."""
    one, other = c.one.modal, c.other.modal
    if c.one.language == "zh" or not (one and other) or one == other:
        return None
    return difference(c, [one], [other]) if c.one.frame == c.other.frame == "yesno" else None


def aspect(c: Comparison) -> Finding | None:
    """What will be asked of in one Chinese text is over in the other; or can, and wants to be."""
    if c.one.language != "zh" or {c.one.frame, c.other.frame} != {"yesno"}:
        return None
    one, other = set(c.one.modal), set(c.other.modal)
    only_one, only_other = one - other, other - one
    return difference(c, only_one, only_other) if only_one and only_other else None
