"""Whether two English texts differ only in how one compound is put ("art history"). Pure.

"The history of art" is "art history", whereas "a glass of wine" is no "wine glass", and a name
("Bank of America") has an order of its own.
"""

import re

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.text.script import fold, normalise
from semantic_layer.text.stemming import stem

_LINKS = frozenset({"of", "in", "at", "for", "on"})
_SMALL = frozenset({"a", "an", "the"})
_VESSELS = frozenset({
    "glass", "cup", "mug", "bottle", "box", "bag", "can", "jar", "pot", "bowl", "plate", "tin",
    "barrel", "basket", "tank", "carton", "bucket", "packet", "pack", "case", "jug", "spoon",
})  # fmt: skip
_OTHERWISE = _VESSELS | {
    "man", "woman", "person", "child", "work", "day", "night", "side", "top", "end", "part", "one",
}  # fmt: skip
_MOST_WORDS = 3  # of what stands before the head of a compound


def is_compound_turned(c: Comparison) -> bool:
    """Say whether one text ties by a preposition what the other only strings together."""
    head = _head(c)
    return head is not None and head not in _OTHERWISE


def vessel(c: Comparison) -> Finding | None:
    """What a thing holds is asked of in one text, the thing in the other ("wine glass")."""
    head = _head(c)
    return difference(c, [f"{head} of"], [head]) if head in _VESSELS else None


def _head(c: Comparison) -> str | None:
    """Return the word that one text ties to what the other puts before it, if that is all."""
    if c.one.language != "en" or c.only_one or c.only_other or c.order == "same":
        return None
    one, other = (_words(side.text) for side in (c.one, c.other))
    return _turned(one, other) or _turned(other, one)


def _turned(tied: list[str], strung: list[str]) -> str | None:
    """Return the B of which "B of A", put as "A B", makes the one text the other."""
    if len(tied) != len(strung) + 1:
        return None
    stems, wanted = [stem(word) for word in tied], [stem(word) for word in strung]
    for i in range(1, len(tied) - 1):
        if tied[i] not in _LINKS or tied[i - 1] in _LINKS:
            continue
        for last in range(i + 2, min(i + 2 + _MOST_WORDS, len(tied) + 1)):
            inner, head = stems[i + 1 : last], stems[i - 1]
            if [*stems[: i - 1], *inner, head, *stems[last:]] == wanted:
                return tied[i - 1]
    return None


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(fold(normalise(text))) if word not in _SMALL]


_WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")
