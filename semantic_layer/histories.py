"""Whether two chats say the same before their last messages, as far as those need it. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from semantic_layer.analysis import analyse
from semantic_layer.chat import Chat, Said
from semantic_layer.differences import difference, key_of
from semantic_layer.doubts import doubts_of
from semantic_layer.grounds import other_ground
from semantic_layer.outcome import Reason
from semantic_layer.remains import Doubt, IsTalk, Left, Remains, lines_of, twins_of
from semantic_layer.sides import without_sides
from semantic_layer.small_talk import sentences

_BY_ORDER = re.compile(
    r"\b(?:first|second|third|last|latter|former)\b|第[一二三]个|前者|后者|最后一个"
)
_ALIKE = 0.6  # share of the fewer words


@dataclass(frozen=True, slots=True)
class Fit:
    """What two histories leave of a hit: at most ``score``, and why.

    ``texts`` are the two last messages as they are to be compared. With ``unsure`` the histories
    would fit better if those sentences were small talk; ``doubts`` are said in other words, for a
    verifier to call the same. ``refers`` tells that the histories are needed and say the same.
    """

    score: float
    reason: Reason
    texts: tuple[str, str]
    unsure: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    refers: bool = False


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
        return Fit(1.0, Reason("history", "pass", "the same"), same, refers=not one.alone)
    if one.alone and other.alone:
        clash = other_ground(asked, stored) or _contradiction(asked, stored)
        verdict = Reason("conversation", "veto", clash)
        passed = Reason("conversation", "pass", "stands alone")
        return Fit(0.0, verdict, texts) if clash else Fit(1.0, passed, texts)
    if one.alone or other.alone or not (asked.history and stored.history):
        return _refused(texts, "only one message stands alone")
    return _fit_referring(asked, stored, Remains(is_talk))


def _fit_referring(asked: Chat, stored: Chat, remains: Remains) -> Fit:
    texts = (asked.text, stored.text)
    if _BY_ORDER.search(asked.text) and not difference(asked.offer, stored.offer).in_order:
        return _refused(texts, "the assistant named things in another order")
    exchanged = _exchanged(asked.history, stored.history)
    if exchanged:
        return _refused(texts, exchanged)
    one, other = without_sides(asked, stored)
    here, there = remains.left(lines_of(one), lines_of(other))
    clash = _clash(asked, stored, here, there)
    if clash:
        return _refused(texts, clash, remains.unsure)
    doubts = doubts_of(asked, stored, here, there)
    dependence = asked.dependence
    same = (dependence.reply,) * 2 if dependence.reply else texts
    detail = f"refers to the same ({dependence.kind}: {dependence.detail})"
    reason = Reason("history", "pass", detail)
    return Fit(1.0, reason, same, remains.unsure if doubts else (), tuple(doubts), True)


def _clash(asked: Chat, stored: Chat, here: Left, there: Left) -> str:
    """Name what the remains contradict each other in: close lines, or numbers of either."""
    for role in ("assistant", "user"):
        for twin in twins_of(here.of(role), there.of(role)):
            if twin.is_close and twin.difference.conflict:
                return f"the {role} said another thing: {twin.difference.conflict}"
    lone = [
        sorted(_numbers(left.assistant) - _numbers(_all_texts(chat)))
        for left, chat in ((here, stored), (there, asked))
    ]
    return f"the assistant said {lone[0][0]} / {lone[1][0]}" if all(lone) else ""


def _numbers(texts: Iterable[str]) -> set[str]:
    return {number for text in texts for number in analyse(text).numbers}


def _all_texts(chat: Chat) -> list[str]:
    return [*(text for _, text in chat.history), chat.text]


def _exchanged(one: Iterable[Said], other: Iterable[Said]) -> str:
    """Name a line whose things changed places in the other history, small talk or not."""
    heres = {line for _, text in one for line in sentences(text)}
    theres = {line for _, text in other for line in sentences(text)}
    for here in heres - theres:
        for there in theres - heres:
            if _said_of(here) == _said_of(there) and difference(here, there).conflict:
                return f"{here} / {there}: the same words, exchanged"
    return ""


def _said_of(text: str) -> frozenset[str]:
    return frozenset(token.norm for token in analyse(text).tokens)


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


def _refused(texts: tuple[str, str], detail: str, unsure: tuple[str, ...] = ()) -> Fit:
    return Fit(0.0, Reason("history", "veto", detail[:200]), texts, unsure)


def _said(chat: Chat) -> list[Said]:
    return [(role, key_of(text)) for role, text in chat.history]


def _by(role: str, history: Iterable[Said]) -> list[str]:
    return [text for by, text in history if by == role]
