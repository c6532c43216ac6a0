"""Whether a message's answer turns on what the user told of himself before. Pure."""

import re
from collections.abc import Sequence
from functools import lru_cache

from semantic_layer.chats.organisation import speaks_of_us
from semantic_layer.chats.small_talk import (
    ENDS_ASKING,
    WORD,
    is_empty,
    reply_of,
    sentences,
    words_of,
)
from semantic_layer.resources import load_pattern
from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of, normalise


def turns_on_user(plain: str, history: Sequence[tuple[str, str]]) -> str:
    """Say so when a message's answer may turn on what the user told of himself."""
    lowers = [word.casefold() for word in WORD.findall(plain)]
    is_personal = not words_of("personal").isdisjoint(lowers)
    if _IMPERSONAL.search(" ".join(lowers)) and not _OF_ONESELF.search(plain):
        return ""
    return _TOLD if is_personal and _tells_of_user(history) else ""


def is_of_oneself_zh(plain: str) -> bool:
    """Say whether a Chinese message asks for the user himself."""
    return bool(_OF_ONESELF_ZH.search(plain))


def turns_on_user_zh(plain: str, history: Sequence[tuple[str, str]]) -> str:
    """Say the same of a Chinese message."""
    if _IMPERSONAL_ZH.search(plain) and not _OF_ONESELF_ZH.search(plain):
        return ""
    return _TOLD if _tells_of_user(history) else ""


# "How do I …" asks for a rule or a way: who asks makes no difference to it.
_IMPERSONAL = re.compile(
    r"\b(?:how|where|when) (?:do|can|could) (?:i|we)\b"
    r"|\bhow long (?:can|may|do) (?:i|we)\b"
    r"|\bhow long (?:do|does|will|is|are) (?!i\b|my\b|we\b)"
)
_OF_ONESELF = re.compile(
    r"\b(?:still|left|next|second|remaining|new|owe|owed|have|get back|mine|should)\b"
    r"|\b(?:my|our) (?!(?:card|account|phone|computer|house|home|door|list)\b)",
    re.IGNORECASE,
)
_IMPERSONAL_ZH = re.compile(r"怎么|如何|哪里|多久|多长时间|要收费吗")
_OF_ONESELF_ZH = re.compile(r"我|可以|能不能|需要|还|最多|同时|期间|那|剩")
_TOLD = "asks for the user, who told something"


def tells_of_us(history: Sequence[tuple[str, str]]) -> bool:
    """Say whether the user told anything of "us", beside what he asked."""
    return any(
        speaks_of_us(clause) and states(clause) and not _asks(clause)
        for role, text in history
        if role == "user"
        for sentence in sentences(text)
        for clause in CLAUSE.split(sentence)
    )


def _asks(clause: str) -> bool:
    return bool(ENDS_ASKING.search(clause) or analyse(clause).frame)


def _tells_of_user(history: Sequence[tuple[str, str]]) -> bool:
    """Say whether the user stated anything beside questions and small talk."""
    return any(
        states(clause)
        for role, text in history
        if role == "user"
        for sentence in sentences(text)
        for clause in CLAUSE.split(sentence)
    )


CLAUSE = re.compile(r"[,;:，；：]\s*")


@lru_cache(maxsize=16_384)
def states(clause: str) -> bool:
    """Say whether a clause tells a fact: it asks nothing, orders nothing, and is no small talk."""
    if not clause.strip() or is_empty(clause) or reply_of(clause) or _greets(clause):
        return False
    if language_of(clause) == "zh":
        if load_pattern("premises.txt", "request_zh").search(clause):
            return False
        return not (ENDS_ASKING.search(clause) or analyse(clause).frame)
    lowers = [word.casefold() for word in WORD.findall(normalise(clause))]
    for i, word in enumerate(lowers):
        before = lowers[i - 1] if i else ""
        if word in words_of("personal_state") and before not in _NOT_STATING and word != "my":
            return True
        if word in {"i", "we"} and before not in _NOT_STATING:
            return True
    return not (
        ENDS_ASKING.search(clause) or analyse(clause).frame or lowers[0] in words_of("imperative")
    )


def _greets(clause: str) -> bool:
    plain = normalise(clause).casefold()
    return bool(load_pattern("premises.txt", "greeting").search(plain))


_NOT_STATING = frozenset(
    {"do", "did", "can", "could", "will", "would", "should", "shall", "may", "might", "must", "am",
     "are", "have", "had", "if", "when", "that", "how", "what", "until", "before", "after", "while"}
)  # fmt: skip
