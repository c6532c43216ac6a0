"""Compares what two sides say beside what both say word for word, and beside small talk. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from semantic_layer.chats.by_words import ByWords
from semantic_layer.chats.chat import Said
from semantic_layer.chats.context_score import Part
from semantic_layer.chats.differences import Difference, difference, key_of
from semantic_layer.chats.referred import words_of_lines
from semantic_layer.chats.small_talk import is_empty, is_of_named, sentences
from semantic_layer.text.analysis import analyse

IsTalk = Callable[[str], bool | None]  # None: nobody knows yet
_CLAUSE = re.compile(r"(?:[,;:，；：]| -)\s*")
_LEAST_CLAUSE = 6  # characters
_LONG_LINE = 200
_MOST_UNSURE = 24
_SAME_LINE = 0.6  # share of the more words


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two texts that differ in telling words, for a verifier to call the same.

    ``part`` is whose words: the user's, the assistant's, or an ``offer`` of his that is replied to.
    """

    part: Part
    one: str
    other: str
    is_addition: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Left:
    """What one side says that the other does not say in these words: lines by who said them."""

    user: tuple[str, ...]
    assistant: tuple[str, ...]

    def of(self, role: str) -> tuple[str, ...]:
        """Return the lines of user or assistant."""
        return self.user if role == "user" else self.assistant


@dataclass(frozen=True, slots=True)
class Twin:
    """A line of each side that speak of the same, and how they differ.

    ``is_close`` tells that they differ in little.
    """

    one: str
    other: str
    difference: Difference
    is_close: bool


@dataclass(slots=True)
class Remains:
    """Compares histories; ``is_talk`` tells small talk that no list of words knows.

    ``unsure`` are lines that it knew nothing of, when not too many.
    """

    is_talk: IsTalk
    _unsure: list[str] = field(default_factory=list)

    @property
    def unsure(self) -> tuple[str, ...]:
        """The lines that may be small talk."""
        return tuple(self._unsure[:_MOST_UNSURE])

    def left(self, one: Sequence[Said], other: Sequence[Said]) -> tuple[Left, Left]:
        """Return what the lines of each side say beside what both say, without small talk."""
        shared = Counter(_keys(one)) & Counter(_keys(other))
        here, there = _beside(one, shared), _beside(other, shared)
        return self._telling(here, there), self._telling(there, here)

    def _telling(self, lines: Sequence[Said], others: Sequence[Said]) -> Left:
        """Drop small talk, but never a line that has a twin on the other side."""
        twins = ByWords([words_of_lines([line]) for _, line in others])
        left: dict[str, list[str]] = {"user": [], "assistant": []}
        for role, line in lines:
            has_twin = twins.has_alike(words_of_lines([line]))
            left[role] += [line] if has_twin else self._kept(line)
        return Left(tuple(left["user"]), tuple(left["assistant"]))

    def _kept(self, line: str) -> list[str]:
        if self._drops(line):
            return []
        clauses = [part for part in _CLAUSE.split(line) if part]
        if len(clauses) == 1 or min(map(len, clauses)) < _LEAST_CLAUSE:
            return [line]
        return [clause for clause in clauses if not self._drops(clause)]

    def _drops(self, line: str) -> bool:
        if len(line) > _LONG_LINE or analyse(line).numbers or is_of_named(line):
            return False
        answer = True if is_empty(line) else self.is_talk(line)
        if answer is None:
            self._unsure.append(line)
        return bool(answer)


def twins_of(one: Sequence[str], other: Sequence[str]) -> Iterator[Twin]:
    """Pair the lines that speak of the same, each at most once, the most alike first.

    Numbers may be others.
    """
    words = [_without_numbers(line) for line in other]
    lines = ByWords(words)
    pairs = [
        (num_shared / max(len(own), len(words[at]), 1) if own else 1.0, line, other[at])
        for line in one
        for own in (_without_numbers(line),)
        for at, num_shared in lines.alike(own)
    ]
    left, right = set(one), set(other)
    for likeness, a, b in sorted(pairs, key=lambda pair: -pair[0]):
        if a in left and b in right:
            left.remove(a)
            right.remove(b)
            yield Twin(a, b, difference(a, b), likeness >= _SAME_LINE)


@lru_cache(maxsize=16_384)
def _without_numbers(line: str) -> frozenset[str]:
    return words_of_lines([line]) - set(analyse(line).numbers)


def split_of(history: Iterable[Said]) -> list[Said]:
    """Divide a history into its lines."""
    return [(role, part) for role, text in history for part in sentences(text)]


def lines_of(history: Iterable[Said]) -> list[Said]:
    """Divide a history into its lines, without those that are plainly empty."""
    return [(role, part) for role, part in split_of(history) if not is_empty(part)]


def _keys(lines: Iterable[Said]) -> list[Said]:
    return [(role, key_of(line)) for role, line in lines]


def _beside(lines: Iterable[Said], shared: Counter[Said]) -> list[Said]:
    """Return the lines that are not shared nor plainly empty; only those are read."""
    budget = Counter(shared)
    left = []
    for role, line in lines:
        key = (role, key_of(line))
        if budget[key]:
            budget[key] -= 1
        elif not is_empty(line):
            left.append((role, line))
    return left
