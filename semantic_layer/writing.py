"""Guards over how two texts are written: signs, capitals that tell things apart, "whose". Pure."""

import re
from collections import Counter

from semantic_layer.edits import Comparison
from semantic_layer.resources import load_lines
from semantic_layer.script import normalise

_SIGNS = re.compile(
    r"!(?=\w)"  # !x
    r"|[=<>&|~^*+\\!]*[=<>|~^*+\\][=<>&|~^*+\\!]*|&&+"  # = != -> || && ^
    r"|[:;][()]"  # :)
    r"|(?<=\b[A-Za-z])[.,-](?=[A-Za-z]\b)"  # a.b
)
_UNIT_LETTERS = 2  # MB, mW, Co


def signs(c: Comparison) -> str | None:
    """Operators or other signs differ."""
    one, other = (Counter(_SIGNS.findall(_plain(side.text))) for side in (c.one, c.other))
    if one == other:
        return None
    return f"{' '.join(one - other) or 'no sign'} / {' '.join(other - one) or 'no sign'}"[:120]


def capitals(c: Comparison) -> str | None:
    """A word differs by capitals that make it another word (MB, Mb; Polish, polish; -l, -L)."""
    cased = _is_cased(c.one.text) and _is_cased(c.other.text)
    for pair in c.pairs:
        a, b = c.one.tokens[pair.one].surface, c.other.tokens[pair.other].surface
        if a == b or a.casefold() != b.casefold() or _begins(c.one.text, a, c.other.text, b):
            continue
        if len(a) == 1 and a.casefold() not in {"a", "i"}:
            return f"{a} / {b}"
        if cased and (len(a) <= _UNIT_LETTERS or a.casefold() in load_lines("homographs.en.txt")):
            return f"{a} / {b}"
    return None


def whose(c: Comparison) -> str | None:
    """One asks whose, or whom of, and the other doesn't."""
    one, other = (_asks_whose(side.text) for side in (c.one, c.other))
    return None if one == other else "whose, on one side only"


def _asks_whose(text: str) -> bool:
    plain = text.casefold().rstrip(" ?.!？。")
    return "谁的" in plain or bool(re.search(r"\bwhose\b|\bof$", plain))


def _begins(one: str, first: str, other: str, second: str) -> bool:
    """Say whether either word begins its text, where a capital tells nothing."""
    return one.lstrip().startswith(first) or other.lstrip().startswith(second)


def _is_cased(text: str) -> bool:
    """Say whether a text is typed with capitals and small letters."""
    return any(char.isupper() for char in text) and any(char.islower() for char in text)


def _plain(text: str) -> str:
    return normalise(text).replace("**", "")
