"""Compares what two sides say beside what both say word for word, and beside small talk. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from semantic_layer.analysis import analyse
from semantic_layer.differences import difference, key_of
from semantic_layer.small_talk import is_empty

IsTalk = Callable[[str], bool | None]  # None: nobody knows yet
_CLAUSE = re.compile(r"(?:[,;:，；：]| -)\s*")
_LEAST_CLAUSE = 6  # characters
_LONG_LINE = 200
_LONG_DOUBT = 400
_MOST_UNSURE = 12
_MOST_LINES = 24  # of a side beside what both say
_FEW_LINES = 2  # of a side, compared as one text
_TWIN = 0.5  # share of the fewer words


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two texts that differ in telling words, for a verifier to call the same."""

    one: str
    other: str
    is_addition: bool
    detail: str


@dataclass(slots=True)
class Remains:
    """Compares lines; ``is_talk`` tells small talk that no list of words knows.

    ``unsure`` are lines that it knew nothing of, when not too many.
    """

    is_talk: IsTalk
    _unsure: list[str] = field(default_factory=list)

    @property
    def unsure(self) -> tuple[str, ...]:
        """The lines that may be small talk."""
        return tuple(self._unsure) if len(self._unsure) <= _MOST_UNSURE else ()

    def compare(self, one: Sequence[str], other: Sequence[str]) -> list[Doubt] | str:
        """Return what is said in other words; a text when something contradicts or stands alone."""
        shared = Counter(map(key_of, one)) & Counter(map(key_of, other))
        here, there = _beside(one, shared), _beside(other, shared)
        if max(len(here), len(there)) > _MOST_LINES:
            return "too much to be compared"
        if max(len(here), len(there)) <= _FEW_LINES:
            found = difference(" ".join(here), " ".join(there))
            if found.is_none and found.in_order:
                return []
        left, right = self._telling(here, there), self._telling(there, here)
        pairs = _paired(left, right)
        return _doubts(pairs) if isinstance(pairs, list) else pairs

    def _telling(self, lines: Sequence[str], others: Sequence[str]) -> list[str]:
        """Drop small talk, but never a line that has a twin on the other side."""
        words = [_words(line) for line in others]
        left = []
        for line in lines:
            has_twin = any(_alike(_words(line), each) for each in words)
            left += [line] if has_twin else self._kept(line)
        return left

    def _kept(self, line: str) -> list[str]:
        if self._drops(line):
            return []
        clauses = [part for part in _CLAUSE.split(line) if part]
        if len(clauses) == 1 or min(map(len, clauses)) < _LEAST_CLAUSE:
            return [line]
        return [clause for clause in clauses if not self._drops(clause)]

    def _drops(self, line: str) -> bool:
        if len(line) > _LONG_LINE or analyse(line).numbers:
            return False
        answer = True if is_empty(line) else self.is_talk(line)
        if answer is None:
            self._unsure.append(line)
        return bool(answer)


def _paired(one: list[str], other: list[str]) -> list[tuple[str, str]] | str:
    """Pair lines that say alike; few are one text together. A text when one stays alone."""
    if max(len(one), len(other)) <= _FEW_LINES:
        return [(" ".join(one), " ".join(other))]
    free = list(other)
    pairs = []
    for line in one:
        words = _words(line)
        best = max(free, key=lambda each: len(words & _words(each)), default="")
        if not _alike(words, _words(best)):
            return f"{line} / nothing"
        free.remove(best)
        pairs.append((line, best))
    return f"nothing / {free[0]}" if free else pairs


def _doubts(pairs: Iterable[tuple[str, str]]) -> list[Doubt] | str:
    doubts = []
    for one, other in pairs:
        found = difference(one, other)
        if found.conflict or max(len(one), len(other)) > _LONG_DOUBT:
            return str(found)
        if not (found.is_none and found.in_order):
            doubts.append(Doubt(one, other, found.is_addition, str(found)))
    return doubts


def _words(line: str) -> frozenset[str]:
    return frozenset(token.norm for token in analyse(line).content if not token.weak)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _TWIN * max(1, min(len(one), len(other)))


def _beside(lines: Iterable[str], shared: Counter[str]) -> list[str]:
    budget = Counter(shared)
    left = []
    for line in lines:
        key = key_of(line)
        if budget[key]:
            budget[key] -= 1
        else:
            left.append(line)
    return left
