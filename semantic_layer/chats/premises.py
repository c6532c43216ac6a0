"""What a chat was told that an answer may turn on even where its last message stands alone. Pure.

A line is harmless only by a finding: small talk, a question or request that was met, or a detail of
a matter that was dealt with, before a question on a provider's own rules. All else is a premise.
"""

import re
from collections.abc import Collection, Sequence
from functools import cache, lru_cache

from semantic_layer.chats.own_matter import asks_by_name, is_at_hand
from semantic_layer.chats.referred import words_of_lines
from semantic_layer.chats.small_talk import (
    CLAUSE_ENDS,
    ENDS_ASKING,
    WORD,
    is_empty,
    reply_of,
    sentences,
    words_of,
)
from semantic_layer.chats.subjects import names_subject
from semantic_layer.chats.told import CLAUSE, states
from semantic_layer.resources import load_pattern
from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of, normalise, simplified

Said = tuple[str, str]

MOST_READ = 300  # messages of a history
_MOST_SIGNS = 40_000  # of a history: reading them takes a tenth of a second
_LONG = 1_000  # signs; what a user says at such length is a text to go by, as a whole
_LEAST_MET = 3  # telling words of an answer to a request
_LEAST_DEALT = 2  # of one to what was told
_YOU = re.compile(r"\b(?:you|yours?|you're|do u|ur)\b", re.IGNORECASE)
_AT_PLACE = re.compile(r"\b(?:to|in|from|at|for|near) [A-Z][a-z]")
_ASKS_YOU = re.compile(
    r"\b(?:can|could|will|would|can't|won't) you\b|\byou mind\b|你?(?:能|可以|可否)", re.IGNORECASE
)


def is_too_long(history: Sequence[Said]) -> bool:
    """Say whether a history is not read: it is the same as another word for word, or not."""
    return len(history) > MOST_READ or sum(len(text) for _, text in history) > _MOST_SIGNS


def premises_of(text: str, history: Sequence[Said]) -> tuple[str, ...]:
    """Return the lines said before a message that its answer may turn on, in their order.

    A history that is too long to be read has its first line for all.
    """
    if is_too_long(history):
        return (history[0][1],)
    by_name = asks_by_name(text)
    wanted = words_of_lines([text]) if by_name or asks_provider(text) else None
    turns = is_at_hand(text) and not asks_provider(text)
    found: list[str] = []
    has_matter = False
    for i, (role, said) in enumerate(history):
        if role == "user":
            has_matter = has_matter or any(map(_brings_matter, _lines(said)))
            answer = history[i + 1][1][:_LONG] if i + 1 < len(history) else ""
            apart_of = wanted if has_matter or by_name else None
            found += [
                line
                for line in _lines(said)
                if _is_premise(line, answer, apart_of, by_name=by_name and not turns)
                or (by_name and turns and _is_own(line) and not _is_trouble(line))
            ]
        else:
            asked = history[i - 1][1] if i else ""
            head = said[:_LONG]
            found += _declared(head, asked[:_LONG]) if wanted is None else _ruled(head)
    return (*found, *_matters(text, history, found)) if wanted is None else tuple(found)


def orders_of(history: Sequence[Said]) -> tuple[str, ...]:
    """Return what the user laid down for all that follows: conventions, meanings, given texts."""
    return tuple(
        line
        for role, text in (() if is_too_long(history) else history)
        if role == "user"
        for line in _lines(text)
        if _is_order(line)
    )


def _lines(said: str) -> tuple[str, ...]:
    """Divide what a user said into sentences, a long text not at all."""
    return (said,) if len(said) > _LONG else sentences(said)


def _is_premise(
    line: str, answer: str, wanted: frozenset[str] | None, *, by_name: bool = False
) -> bool:
    if _is_order(line):
        return True
    if _is_small_talk(line):
        return False
    if _is_told(line):
        if wanted is None or _is_lasting(line):
            return True
        return not _is_apart(line, answer, wanted, is_met=by_name)
    if ENDS_ASKING.search(line):
        return bool(_ASKS_YOU.search(line)) and _num_telling(answer) < _LEAST_MET
    return _num_telling(answer) < _least_met(line)


def _is_own(line: str) -> bool:
    """Say whether a user tells of himself, and does not only ask."""
    words = (word.casefold() for word in WORD.findall(normalise(line)))
    return _is_told(line) and not words_of("personal").isdisjoint(words)


def _is_apart(line: str, answer: str, wanted: frozenset[str], *, is_met: bool = False) -> bool:
    """Say whether a line was dealt with, and tells nothing on the last message's matter."""
    told = [clause for clause in CLAUSE.split(line) if states(clause)]
    is_met = is_met or _num_telling(answer) >= _LEAST_DEALT or not _is_own(line)
    is_met = is_met or bool(_pattern("detail").search(line.casefold()))
    return is_met and words_of_lines(told).isdisjoint(wanted)


@lru_cache(maxsize=16_384)
def _brings_matter(line: str) -> bool:
    """Say whether a line asks, orders or complains: what is told then is of that matter."""
    if len(line) > _LONG:
        return False
    return _asks(line) or bool(analyse(line).frame) or _is_trouble(line)


def _is_trouble(line: str) -> bool:
    return bool(_pattern("trouble").search(line.casefold()))


def _least_met(line: str) -> int:
    if _pattern("request_zh").search(line):
        return 1
    return 0 if analyse(line).frame and not _orders(line) else _LEAST_MET


@lru_cache(maxsize=16_384)
def _num_telling(text: str) -> int:
    """Count the telling words of an answer, signs of Chinese by twos."""
    said = [part for part in sentences(text) if not _is_small_talk(part)]
    if language_of(text) == "zh":
        return sum(len(part) for part in said) // 2
    return sum(len(analyse(part).content) for part in said)


@lru_cache(maxsize=16_384)
def _is_told(line: str) -> bool:
    return any(states(clause) for clause in CLAUSE.split(line))


@lru_cache(maxsize=16_384)
def _is_small_talk(line: str) -> bool:
    """Say whether every word of a line is small talk."""
    if reply_of(line):
        return True
    plain = normalise(line).casefold()
    if any(char.isdigit() for char in plain) or not any(char.isalpha() for char in plain):
        return not any(char.isdigit() for char in plain)
    if _pattern("greeting").search(plain):
        return True
    if language_of(plain) == "zh":
        return not any(char.isalpha() for char in _chatter_zh().sub("", plain))
    if not is_empty(line):
        return False
    known = words_of("chatter") | words_of("neutral") | words_of("generic") | words_of("reply")
    content = [token for token in analyse(plain).content if not token.weak]
    return all(t.norm in known or t.surface.casefold() in known for t in content)


@cache
def _chatter_zh() -> re.Pattern[str]:
    words = words_of("chatter", "zh") | words_of("filler", "zh") | words_of("accept", "zh")
    longest = sorted(words | {"我", "好", "今天"}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest)) + "|" + CLAUSE_ENDS.pattern)


@lru_cache(maxsize=16_384)
def _is_order(line: str) -> bool:
    return (
        len(line) > _LONG
        or _is_rule(line)
        or bool(_pattern("order").search(normalise(line).casefold()))
    )


@lru_cache(maxsize=16_384)
def _is_rule(line: str) -> bool:
    return bool(_pattern("rule").search(normalise(line).casefold()))


@lru_cache(maxsize=16_384)
def _is_lasting(line: str) -> bool:
    """Say whether a line tells what the user is or has, which any answer may turn on."""
    return bool(_AT_PLACE.search(line) or _pattern("lasting").search(normalise(line).casefold()))


def asks_provider(text: str) -> bool:
    """Say whether a message is about a provider's own matters, whoever asks."""
    return bool(_pattern("provider").search(simplified(normalise(text).casefold())))


def _ruled(said: str) -> list[str]:
    return [line for line in sentences(said) if _is_rule(line)]


def _declared(said: str, asked: str) -> list[str]:
    """Return what an assistant says that answers nothing: its role, an offer, a rule."""
    if asked and (_asks(asked) or not all(map(_is_small_talk, sentences(asked)))):
        return _ruled(said)
    return [line for line in sentences(said) if _is_rule(line) or not _is_small_talk(line)]


def _asks(text: str) -> bool:
    return bool(ENDS_ASKING.search(text)) or _orders(text)


def _orders(text: str) -> bool:
    return not words_of("imperative").isdisjoint(WORD.findall(text.casefold())[:1])


def _matters(text: str, history: Sequence[Said], found: Collection[str]) -> list[str]:
    """Return what else a chat was about, where the last message may be about it too.

    Neither small talk nor what any provider is asked, with the answer.
    """
    if names_subject(text):
        return []
    lines: list[str] = []
    is_met = False
    for role, said in history:
        if role == "user":
            is_met = all(map(_asks_any_provider, _lines(said)))
        if not is_met:
            lines += _lines(said[:_LONG])
    return [line for line in lines if line not in found and not _is_small_talk(line)]


@lru_cache(maxsize=16_384)
def _asks_any_provider(line: str) -> bool:
    """Say whether a line is about a provider's own matters, whoever that is, or small talk."""
    if _is_small_talk(line):
        return True
    is_own = _pattern("serves").search(line.casefold()) or asks_provider(_YOU.sub("", line))
    return bool(is_own) and not _names(line)


@lru_cache(maxsize=16_384)
def _names(line: str) -> tuple[str, ...]:
    known = words_of("deictic")
    found = (token.surface for token in analyse(line).tokens if token.name)
    return tuple(name for name in found if WORD.search(name) and name.casefold() not in known)


def _pattern(name: str) -> re.Pattern[str]:
    return load_pattern("premises.txt", name)
