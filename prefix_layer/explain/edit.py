"""The first place where two texts part, and what stands there until they agree again. Pure."""

import re
from dataclasses import dataclass

AGREE_WORDS = 5  # so many equal words in a row end an edit
MAX_EDIT_CHARS = 4000
NEAR_CHARS = 400  # looked through first
MAX_WORD_CHARS = 64  # a longer one is taken as several

_IDEOGRAPH = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff"
_WORD = re.compile(rf"[^\W{_IDEOGRAPH}]{{1,{MAX_WORD_CHARS}}}|\s|.", re.DOTALL)
_WORD_CHAR = re.compile(rf"[^\W{_IDEOGRAPH}]")


@dataclass(frozen=True, slots=True)
class Edit:
    """``here`` stands in one text where ``cached`` stands in the other, both from ``start`` on.

    ``start`` counts characters and is the start of a word; ``resumes`` says whether the texts go on
    alike behind the edit, or part for good.
    """

    start: int
    here: str
    cached: str
    resumes: bool


def first_edit(here: str, cached: str) -> Edit | None:
    """Find the first edit between two texts; None when one begins with the other."""
    start = common_length(here, cached)
    if start == min(len(here), len(cached)):
        return None
    least = max(0, start - MAX_WORD_CHARS)
    while start > least and _WORD_CHAR.match(here, start - 1) and _is_inside(here, cached, start):
        start -= 1
    found = _resumed(here, cached, start)
    if found is None:
        rest = slice(start, start + MAX_EDIT_CHARS)
        return Edit(start, here[rest], cached[rest], resumes=False)
    return Edit(start, *found, resumes=True)


def _resumed(here: str, cached: str, start: int) -> tuple[str, str] | None:
    """Return what stands in both before they agree again; near places are tried first."""
    for num_chars in (NEAR_CHARS, MAX_EDIT_CHARS):
        ours, theirs = (
            _words(text[start : start + num_chars + 1], num_chars) for text in (here, cached)
        )
        ends = _agreement(ours, theirs)
        is_near = ends is not None and sum(ends) + AGREE_WORDS < min(len(ours), len(theirs))
        if is_near or num_chars == MAX_EDIT_CHARS:
            break
    return None if ends is None else ("".join(ours[: ends[0]]), "".join(theirs[: ends[1]]))


def common_length(a: str, b: str) -> int:
    """Count the characters that both texts begin with."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _is_inside(here: str, cached: str, start: int) -> bool:
    """Say whether the place is within, or at the end of, a word of either text."""
    follows = [text[start : start + 1] for text in (here, cached)]
    return start > 0 and any(_WORD_CHAR.match(char) for char in follows if char)


def _words(text: str, num_chars: int) -> list[str]:
    """Split a text; marks behind its end, if it is not cut, let ends agree with ends."""
    words = _WORD.findall(text[:num_chars])
    ends = [f"\0{i}" for i in range(AGREE_WORDS)]
    return words + ends if len(text) <= num_chars else words


def _agreement(ours: list[str], theirs: list[str]) -> tuple[int, int] | None:
    """Find the nearest places from which both go on with the same words."""
    last = len(theirs) - AGREE_WORDS
    places = {tuple(theirs[j : j + AGREE_WORDS]): j for j in range(last, -1, -1)}
    found: tuple[int, int] | None = None
    for i in range(len(ours) - AGREE_WORDS + 1):
        if found is not None and i >= sum(found):
            break
        j = places.get(tuple(ours[i : i + AGREE_WORDS]))
        if j is not None and (found is None or i + j < sum(found)):
            found = (i, j)
    return found
