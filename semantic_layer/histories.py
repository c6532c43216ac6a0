"""Whether two chats say the same before their last messages, as far as those need it. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from semantic_layer.analysis import analyse
from semantic_layer.chat import Chat, Said
from semantic_layer.clashes import clash_of, close_clash, exchanged
from semantic_layer.differences import difference, key_of
from semantic_layer.doubts import doubts_of
from semantic_layer.grounds import other_ground
from semantic_layer.outcome import Reason
from semantic_layer.remains import Doubt, IsTalk, Remains, lines_of
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
    turned = exchanged(asked, stored)
    if turned:
        return _refused(texts, turned)
    one, other = without_sides(asked, stored)
    here, there = remains.left(lines_of(one), lines_of(other))
    clash = clash_of(asked, stored, here, there)
    if clash:
        return _refused(texts, clash, remains.unsure)
    doubts = doubts_of(asked, stored, here, there)
    dependence = asked.dependence
    same = (dependence.reply,) * 2 if dependence.reply else texts
    detail = f"refers to the same ({dependence.kind}: {dependence.detail})"
    reason = Reason("history", "pass", detail)
    return Fit(1.0, reason, same, remains.unsure if doubts else (), tuple(doubts), True)


def _contradiction(one: Chat, other: Chat) -> str:
    """Name what lines contradict each other in: close ones, or on the matter of both messages."""
    heres, theres = _lines(one), _lines(other)
    same = heres & theres
    found = close_clash(sorted(heres - same), sorted(theres - same))
    if found:
        return found
    mine, others = (_on_matter(chat, lines) for chat, lines in ((one, heres), (other, theres)))
    for here, words in mine.items():
        for there, there_words in others.items():
            alike = len(words & there_words) >= _ALIKE * min(len(words), len(there_words))
            if alike and key_of(here) != key_of(there):
                conflict = difference(here, there).conflict
                if conflict:
                    return conflict
    return ""


def _lines(chat: Chat) -> set[str]:
    return {line for _, text in chat.history for line in sentences(text)}


def _on_matter(chat: Chat, lines: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the lines that speak of what the last message does, and their words."""
    wanted = _words(chat.text)
    return {line: words for line in lines if not (words := _words(line)).isdisjoint(wanted)}


def _words(text: str) -> frozenset[str]:
    tokens = analyse(text).content
    return frozenset(token.norm for token in tokens if token.kind == "word" and not token.weak)


def _refused(texts: tuple[str, str], detail: str, unsure: tuple[str, ...] = ()) -> Fit:
    return Fit(0.0, Reason("history", "veto", detail[:200]), texts, unsure)


def _said(chat: Chat) -> list[Said]:
    return [(role, key_of(text)) for role, text in chat.history]


def _by(role: str, history: Iterable[Said]) -> list[str]:
    return [text for by, text in history if by == role]
