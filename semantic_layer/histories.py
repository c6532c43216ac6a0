"""Whether two chats say the same before their last messages, as far as those need it. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from semantic_layer.analysis import analyse
from semantic_layer.chat import Chat, Said
from semantic_layer.differences import Difference, difference, key_of
from semantic_layer.grounds import other_ground
from semantic_layer.outcome import Reason
from semantic_layer.sides import without_sides
from semantic_layer.small_talk import is_empty, sentences

IsTalk = Callable[[str], bool | None]  # None: nobody knows yet
_CLAUSE = re.compile(r"(?:[,;:，；：]| -)\s*")
_BY_ORDER = re.compile(
    r"\b(?:first|second|third|last|latter|former)\b|第[一二三]个|前者|后者|最后一个"
)
_LEAST_CLAUSE = 6  # characters
_MOST_UNSURE = 12
_LONG_LINE = 200
_ALIKE = 0.6  # share of the fewer words


@dataclass(frozen=True, slots=True)
class Fit:
    """What two histories leave of a hit: at most ``score``, and why.

    ``texts`` are the two last messages as they are to be compared. With ``unsure`` the histories
    would fit if those sentences were small talk.
    """

    score: float
    reason: Reason
    texts: tuple[str, str]
    unsure: tuple[str, ...] = ()


def fit_of(asked: Chat, stored: Chat, is_talk: IsTalk = lambda _: False) -> Fit:
    """Say whether the stored chat's answer can be meant for the asked one's last message.

    ``is_talk`` tells small talk that no list of words knows.
    """
    one, other = asked.dependence, stored.dependence
    texts = (asked.text, stored.text)
    if one.reply != other.reply:
        return _refused(texts, f"{one.reply or 'no reply'} / {other.reply or 'no reply'}")
    if _said(asked) == _said(stored):
        same = (one.reply, other.reply) if one.reply else texts
        return Fit(1.0, Reason("history", "pass", "the same"), same)
    if one.alone and other.alone:
        clash = other_ground(asked, stored) or _contradiction(asked, stored)
        verdict = Reason("conversation", "veto", clash)
        passed = Reason("conversation", "pass", "stands alone")
        return Fit(0.0, verdict, texts) if clash else Fit(1.0, passed, texts)
    if one.alone or other.alone or not (asked.history and stored.history):
        return _refused(texts, "only one message stands alone")
    return _fit_referring(asked, stored, _Remains(is_talk))


def _fit_referring(asked: Chat, stored: Chat, remains: "_Remains") -> Fit:
    one, other = without_sides(asked, stored)
    parts = (
        ("the assistant last", _last(one), _last(other)),
        ("the user", _by("user", one), _by("user", other)),
        ("the assistant before", _by("assistant", one)[:-1], _by("assistant", other)[:-1]),
    )
    dependence = asked.dependence
    texts = (asked.text, stored.text)
    if _BY_ORDER.search(asked.text) and not difference(asked.offer, stored.offer).in_order:
        return _refused(texts, "the assistant named things in another order")
    for name, here, there in parts:
        found = remains.difference(_lines(here), _lines(there))
        if not (found.is_none or (name == "the assistant before" and found.is_addition)):
            return _refused(texts, f"{name} said another thing: {found}", remains.unsure)
    detail = f"refers to the same ({dependence.kind}: {dependence.detail})"
    same = (dependence.reply,) * 2 if dependence.reply else texts
    return Fit(1.0, Reason("history", "pass", detail), same)


def _contradiction(one: Chat, other: Chat) -> str:
    """Name what lines on the matter of two messages contradict each other in."""
    heres, theres = _on_matter(one), _on_matter(other)
    for here, words in heres.items():
        for there, others in theres.items():
            alike = len(words & others) >= _ALIKE * min(len(words), len(others))
            if alike and key_of(here) != key_of(there):
                conflict = difference(here, there).conflict
                if conflict:
                    return conflict
    return ""


def _on_matter(chat: Chat) -> dict[str, frozenset[str]]:
    """Return the lines of a history that speak of what the last message does, and their words."""
    wanted = _words(chat.text)
    lines = {line: _words(line) for _, text in chat.history for line in sentences(text)}
    return {line: words for line, words in lines.items() if len(words & wanted) > 0}


def _words(text: str) -> frozenset[str]:
    tokens = analyse(text).content
    return frozenset(token.norm for token in tokens if token.kind == "word" and not token.weak)


@dataclass(slots=True)
class _Remains:
    """Compares what two sides say beside what both say word for word, and beside small talk."""

    is_talk: IsTalk
    _unsure: list[str] = field(default_factory=list)

    @property
    def unsure(self) -> tuple[str, ...]:
        return tuple(self._unsure) if len(self._unsure) <= _MOST_UNSURE else ()

    def difference(self, one: Sequence[str], other: Sequence[str]) -> Difference:
        shared = Counter(map(key_of, one)) & Counter(map(key_of, other))
        here, there = _beside(one, shared), _beside(other, shared)
        found = difference(" ".join(here), " ".join(there))
        if found.is_none:
            return found
        less = difference(self._telling(here), self._telling(there))
        return less if less.is_none or less.is_addition else found

    def _telling(self, lines: Iterable[str]) -> str:
        return " ".join(part for line in lines for part in self._kept(line))

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


def _refused(texts: tuple[str, str], detail: str, unsure: tuple[str, ...] = ()) -> Fit:
    return Fit(0.0, Reason("history", "veto", detail[:200]), texts, unsure)


def _said(chat: Chat) -> list[Said]:
    return [(role, key_of(text)) for role, text in chat.history]


def _by(role: str, history: Iterable[Said]) -> list[str]:
    return [text for by, text in history if by == role]


def _last(history: Iterable[Said]) -> list[str]:
    return _by("assistant", history)[-1:]


def _lines(texts: Iterable[str]) -> list[str]:
    return [part for text in texts for part in sentences(text) if not is_empty(part)]


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
