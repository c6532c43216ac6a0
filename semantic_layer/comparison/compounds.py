"""Whether two English texts differ only in how one compound is put ("art history"). Pure.

"The history of art" is "art history", whereas "a glass of wine" is no "wine glass", and a name
("Bank of America") has an order of its own.
"""

import re

from semantic_layer.comparison.edits import Comparison
from semantic_layer.text.script import fold, normalise
from semantic_layer.text.stemming import stem

_LINKS = frozenset({"of", "in", "at", "for", "on"})
_SMALL = frozenset({"a", "an", "the"})
_HOLDING = frozenset({
    "glass", "cup", "mug", "bottle", "box", "bag", "can", "jar", "pot", "bowl", "plate", "tin",
    "barrel", "basket", "tank", "carton", "bucket", "packet", "pack", "case", "jug", "spoon",
    "man", "woman", "person", "child", "work", "day", "night", "side", "top", "end", "part", "one",
})  # fmt: skip
_MOST_WORDS = 3  # of what stands before the head of a compound


def is_compound_turned(c: Comparison) -> bool:
    """Say whether one text ties by a preposition what the other only strings together."""
    if c.one.language != "en" or c.only_one or c.only_other or c.order == "same":
        return False
    one, other = (_words(side.text) for side in (c.one, c.other))
    return _turned(one, other) or _turned(other, one)


def _turned(tied: list[str], strung: list[str]) -> bool:
    """Say whether putting "B of A" as "A B" makes the one text the other."""
    for i in range(1, len(tied) - 1):
        head = tied[i - 1]
        if tied[i] not in _LINKS or head in _HOLDING or head in _LINKS:
            continue
        for last in range(i + 2, min(i + 2 + _MOST_WORDS, len(tied) + 1)):
            inner = tied[i + 1 : last]
            if _stems([*tied[: i - 1], *inner, head, *tied[last:]]) == _stems(strung):
                return True
    return False


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(fold(normalise(text))) if word not in _SMALL]


_WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")


def _stems(words: list[str]) -> list[str]:
    return [stem(word) for word in words]
