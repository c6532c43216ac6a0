"""What kind of thing an English question asks for, and the words that only say so. Pure."""

import re
from functools import cache

from semantic_layer.resources import load_lines

_YES_NO = frozenset({
    "is", "are", "am", "was", "were", "do", "does", "did", "can", "could", "will", "would", "shall",
    "should", "may", "might", "must", "has", "have", "had",
})  # fmt: skip


@cache
def _rules() -> tuple[tuple[str, str], ...]:
    rows = [(name, rule.strip()) for name, _, rule in
            (line.partition(":") for line in load_lines("frames.en.txt"))]  # fmt: skip
    parts = dict(rows[:2])
    return tuple(
        (name, rf"(?<!\S)(?:{_filled(rule, parts)}){_end_of(rule)}") for name, rule in rows[2:]
    )


@cache
def _frames() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(rule)) for name, rule in _rules())


@cache
def _any_frame() -> re.Pattern[str]:
    return re.compile("|".join(rule for _, rule in _rules()))


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
    best = _earliest(joined)
    first_yes_no = any(lowers[i] in _YES_NO for i in starts)
    opens = bool(lowers) and lowers[0] in _YES_NO
    if best is not None and not (opens and best[1].start() > 0 and best[0] != "how"):
        name, match = best
        first = joined[: match.start()].count(" ")
        return name, frozenset(range(first, first + len(match[0].split())))
    return ("yesno" if first_yes_no else ""), frozenset()


def _earliest(joined: str) -> tuple[str, re.Match[str]] | None:
    """Return the first frame in the text; of those that begin there the longest."""
    found = _any_frame().search(joined)
    if found is None:
        return None
    matches = (
        (name, match)
        for name, pattern in _frames()
        if (match := pattern.match(joined, found.start())) is not None
    )
    return max(matches, key=lambda pair: pair[1].end())
