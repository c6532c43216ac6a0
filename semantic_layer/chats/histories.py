"""Whether two chats say the same before their last messages, as far as those need it. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from semantic_layer.chats.chat import Chat, Said
from semantic_layer.chats.clashes import (
    clash_of,
    close_clash,
    exchanged,
    lone_of,
    other_answer,
    other_things,
    replaced,
)
from semantic_layer.chats.differences import difference, key_of
from semantic_layer.chats.doubts import doubts_of
from semantic_layer.chats.grounds import other_ground
from semantic_layer.chats.premises import is_too_long
from semantic_layer.chats.referents import other_referent
from semantic_layer.chats.remains import Doubt, IsTalk, Remains, split_of
from semantic_layer.chats.sides import without_sides
from semantic_layer.chats.small_talk import sentences
from semantic_layer.chats.stand_ins import stand_in
from semantic_layer.chats.subjects import names_subject
from semantic_layer.outcome import Reason
from semantic_layer.text.analysis import analyse

_BY_ORDER = re.compile(
    r"\b(?:first|second|third|last|latter|former)\b|第[一二三]个|前者|后者|最后一个"
)
_MOST_LONE = 150  # lines of a chat that another lacks
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
        refers = not (one.alone or one.kind == "premise")
        return Fit(1.0, Reason("history", "pass", "the same"), same, refers=refers)
    other_told = _other_told(asked, stored)
    if other_told:
        return _refused(texts, other_told)
    return _fit_told_alike(asked, stored, Remains(is_talk))


def _fit_told_alike(asked: Chat, stored: Chat, remains: Remains) -> Fit:
    """Compare chats by what their last messages need, once neither alone was told a premise."""
    texts, one, other = (asked.text, stored.text), asked.dependence, stored.dependence
    if one.kind == "premise":
        return _fit_premises(asked, stored)
    if one.alone and other.alone:
        clash = other_ground(asked, stored) or _contradiction(asked, stored)
        if not (clash or names_subject(asked.text)):
            clash = other_answer(asked, stored)
        verdict = Reason("conversation", "veto", clash)
        passed = Reason("conversation", "pass", "stands alone")
        return Fit(0.0, verdict, texts) if clash else Fit(1.0, passed, texts)
    if asked.standing and stored.standing:
        return _fit_restated(asked, stored, remains)
    if one.alone or other.alone or not (asked.history and stored.history):
        return _refused(texts, "only one message stands alone")
    return _fit_referring(asked, stored, remains)


def _other_told(asked: Chat, stored: Chat) -> str:
    """Say what only one chat was told that bears on the answer, "" when both were alike."""
    if is_too_long(asked.history) or is_too_long(stored.history):
        return "too much was said to compare, and not the same"
    return _other_orders(asked, stored) or _one_premise(asked, stored)


def _other_orders(one: Chat, other: Chat) -> str:
    """Name what only one user laid down for all that follows."""
    ones, others = ([key_of(line) for line in chat.orders] for chat in (one, other))
    if ones == others:
        return ""
    lone = next((line for line in ones if line not in others), "")
    lone = lone or next((line for line in others if line not in ones), "")
    return f"only one was told: {lone}" if lone else "told in another order"


def _one_premise(one: Chat, other: Chat) -> str:
    """Say which chat alone was told something that its answer may turn on."""
    kinds = (one.dependence.kind, other.dependence.kind)
    if kinds.count("premise") != 1:
        return ""
    return f"only one was told: {(one, other)[kinds.index('premise')].dependence.detail}"


def _fit_premises(asked: Chat, stored: Chat) -> Fit:
    """Compare what was told before messages that are whole by themselves.

    Lines in other words are for a verifier, as strictly as plain questions, unless rules say that
    they are no rewording.
    """
    texts = (asked.text, stored.text)
    ones, others = ([key_of(line) for line in chat.premises] for chat in (asked, stored))
    if ones == others:
        clash = other_ground(asked, stored)
        reason = Reason("history", "pass", "told the same")
        return _refused(texts, clash) if clash else Fit(1.0, reason, texts)
    here = [line for line in asked.premises if key_of(line) not in others]
    there = [line for line in stored.premises if key_of(line) not in ones]
    clash = _other_premise(here, there) or other_ground(asked, stored)
    if clash:
        return _refused(texts, clash)
    told = (" ".join(here), " ".join(there))
    found = difference(*told)
    if found.is_none and found.in_order:
        return Fit(1.0, Reason("history", "pass", "told the same"), texts)
    return _refused(texts, f"told in other words: {found}")


def _other_premise(here: list[str], there: list[str]) -> str:
    """Say why lines can't say the same: only one side has any, or they differ in a thing."""
    if not (here and there):
        return f"only one was told: {(here or there or ['in this order'])[0]}"
    if max(len(here), len(there)) > _MOST_PREMISES:
        return "too much was told in other words"
    return close_clash(here, there) or replaced(here, there) or other_things(here, there)


_MOST_PREMISES = 4


def _fit_restated(asked: Chat, stored: Chat, remains: Remains) -> Fit:
    """Compare the words of a rewriter, unless the histories contradict each other."""
    texts = (asked.standing, stored.standing)
    clash, lone = exchanged(asked, stored) or _contradiction(asked, stored), ""
    if not (clash or asked.alone or stored.alone):
        one, other = without_sides(asked, stored)
        left = remains.left(split_of(one), split_of(other))
        clash = clash_of(asked, stored, *left)
        lone = "" if clash else lone_of(asked, stored, *left)
    if clash or lone:
        return _refused(texts, clash or lone, remains.unsure if lone else ())
    return Fit(1.0, Reason("history", "pass", "as rewritten"), texts)


def _fit_referring(asked: Chat, stored: Chat, remains: Remains) -> Fit:
    texts = (asked.text, stored.text)
    if _BY_ORDER.search(asked.text) and not difference(asked.offer, stored.offer).in_order:
        return _refused(texts, "the assistant named things in another order")
    differs = (
        _too_much_lone(asked, stored) or exchanged(asked, stored) or other_referent(asked, stored)
    )
    if differs:
        return _refused(texts, differs)
    one, other = without_sides(asked, stored)
    here, there = remains.left(split_of(one), split_of(other))
    clash = clash_of(asked, stored, here, there)
    lone = "" if clash else lone_of(asked, stored, here, there)
    if clash or lone:
        return _refused(texts, clash or lone, remains.unsure if lone else ())
    instead = stand_in(asked, stored, one, other)
    if instead:
        return _refused(texts, f"one thing in the place of another: {instead}")
    doubts = doubts_of(asked, stored, here, there)
    dependence = asked.dependence
    same = (dependence.reply,) * 2 if dependence.reply else texts
    detail = f"refers to the same ({dependence.kind}: {dependence.detail})"
    reason = Reason("history", "pass", detail)
    return Fit(1.0, reason, same, remains.unsure if doubts else (), tuple(doubts), True)


def _too_much_lone(one: Chat, other: Chat) -> str:
    """Say so when a chat has very many lines that the other lacks: reading them takes too long."""
    heres, theres = _lines(one), _lines(other)
    num_lone = max(len(heres - theres), len(theres - heres))
    return "too much was said in other words" if num_lone > _MOST_LONE else ""


def _contradiction(one: Chat, other: Chat) -> str:
    """Name what lines contradict each other in: close ones, or on the matter of both messages.

    Of two lines that are compared at least one is not in both chats.
    """
    heres, theres = _lines(one), _lines(other)
    own, others = sorted(heres - theres), sorted(theres - heres)
    found = close_clash(own, others)
    if found:
        return found
    mine, yours = _on_matter(one, own), _on_matter(other, others)
    return (
        (mine and _conflict(mine, _on_matter(other, sorted(theres))))
        or (yours and _conflict(_on_matter(one, sorted(heres)), yours))
        or ""
    )


def _conflict(ones: dict[str, frozenset[str]], others: dict[str, frozenset[str]]) -> str:
    """Name what two lines contradict each other in that share most words."""
    for here, words in ones.items():
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
    if is_too_long(chat.history):
        return list(chat.history)
    return [(role, key_of(text)) for role, text in chat.history]


def _by(role: str, history: Iterable[Said]) -> list[str]:
    return [text for by, text in history if by == role]
