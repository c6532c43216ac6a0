"""What kind of thing an English question asks for, and the words that only say so. Pure."""

import re
from functools import cache

from semantic_layer.resources import load_lines

_YES_NO = frozenset({
    "is", "are", "am", "was", "were", "do", "does", "did", "can", "could", "will", "would", "shall",
    "should", "may", "might", "must", "has", "have", "had",
})  # fmt: skip


@cache
def _frames() -> tuple[tuple[str, re.Pattern[str]], ...]:
    rows = [(name, rule.strip()) for name, _, rule in
            (line.partition(":") for line in load_lines("frames.en.txt"))]  # fmt: skip
    parts = dict(rows[:2])
    return tuple(
        (name, re.compile(rf"(?<!\S)(?:{_filled(rule, parts)}){_end_of(rule)}"))
        for name, rule in rows[2:]
    )


def _end_of(rule: str) -> str:
    """Return the border after a rule; a rule that only looks ahead uses no word up."""
    return "" if rule.startswith("(?=") else r"(?!\S)"


def _filled(rule: str, parts: dict[str, str]) -> str:
    for name, part in parts.items():
        rule = rule.replace(f"{{{name}}}", part)
    return rule


def find_frame(lowers: list[str], starts: list[int]) -> tuple[str, frozenset[int]]:
    """Return the frame of a question and the indices of the words that only make it.

    Frames: how, why, when, where, who, howmany, howmuch, …, which, what, yesno, and "" for the
    rest (orders, statements, key words). ``starts`` are the indices where a clause begins.
    """
    joined = " ".join(lowers)
    best: tuple[int, int, str, int] | None = None
    for name, pattern in _frames():
        match = pattern.search(joined)
        if match is not None and (best is None or (match.start(), -match.end()) < best[:2]):
            best = (match.start(), -match.end(), name, match.end())
    first_yes_no = any(lowers[i] in _YES_NO for i in starts)
    opens = bool(lowers) and lowers[0] in _YES_NO
    if best is not None and not (opens and best[0] > 0 and best[2] != "how"):
        first = joined[: best[0]].count(" ")
        num_words = len(joined[best[0] : best[3]].split())
        return best[2], frozenset(range(first, first + num_words))
    return ("yesno" if first_yes_no else ""), frozenset()
