"""Whether two chats say the same before their last messages, as far as those need it. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from semantic_layer.analysis import analyse
from semantic_layer.chat import Chat, Said
from semantic_layer.differences import difference, key_of
from semantic_layer.grounds import other_ground
from semantic_layer.outcome import Reason
from semantic_layer.remains import Doubt, IsTalk, Remains
from semantic_layer.sides import without_sides
from semantic_layer.small_talk import is_empty, sentences

_BY_ORDER = re.compile(
    r"\b(?:first|second|third|last|latter|former)\b|第[一二三]个|前者|后者|最后一个"
)
_MOST_DOUBTS = 6
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
    one, other = without_sides(asked, stored)
    texts = (asked.text, stored.text)
    if _BY_ORDER.search(asked.text) and not difference(asked.offer, stored.offer).in_order:
        return _refused(texts, "the assistant named things in another order")
    exchanged = _exchanged(one, other)
    if exchanged:
        return _refused(texts, exchanged)
    parts = (
        ("the assistant last", _last(one), _last(other)),
        ("the user", _by("user", one), _by("user", other)),
        ("the assistant before", _by("assistant", one)[:-1], _by("assistant", other)[:-1]),
    )
    doubts: list[Doubt] = []
    for name, here, there in parts:
        found = remains.compare(_lines(here), _lines(there))
        if isinstance(found, str):
            return _refused(texts, f"{name} said another thing: {found}", remains.unsure)
        if not (name == "the assistant before" and all(d.is_addition for d in found)):
            doubts += found
    dependence = asked.dependence
    same = (dependence.reply,) * 2 if dependence.reply else texts
    detail = f"refers to the same ({dependence.kind}: {dependence.detail})"
    if len(doubts) > _MOST_DOUBTS:
        return _refused(texts, f"{len(doubts)} things are said in other words", remains.unsure)
    reason = Reason("history", "pass", detail)
    return Fit(1.0, reason, same, remains.unsure if doubts else (), tuple(doubts), True)


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


def _last(history: Iterable[Said]) -> list[str]:
    return _by("assistant", history)[-1:]


def _lines(texts: Iterable[str]) -> list[str]:
    return [part for text in texts for part in sentences(text) if not is_empty(part)]
