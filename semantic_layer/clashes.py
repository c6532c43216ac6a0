"""What two histories contradict each other in, whatever a verifier might say. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from semantic_layer.analysis import analyse
from semantic_layer.chat import Chat
from semantic_layer.differences import cardinal, difference, key_of
from semantic_layer.doubts import answered_otherwise, near_lines
from semantic_layer.remains import Left, twins_of
from semantic_layer.small_talk import Reply, reply_of, sentences, words_of


def clash_of(asked: Chat, stored: Chat, here: Left, there: Left) -> str:
    """Name what is left of two histories that can't both be the same, "" when nothing is.

    Lines that differ in little and contradict each other; another yes or no to the same; numbers
    or names of what matters that each chat lacks of the other.
    """
    for role in ("assistant", "user"):
        found = close_clash(here.of(role), there.of(role))
        if found:
            return f"the {role} said another thing: {found}"
    turned = _other_reply(asked, stored)
    if turned:
        return turned
    answers = answered_otherwise(asked, stored)
    ones = [*near_lines(asked, here.user), *answers[0]]
    others = [*near_lines(stored, there.user), *answers[1]]
    for find, known in ((_numbers, _numbers), (_names, _words)):
        lone = tuple(
            sorted(find(lines) - known([*_texts(chat), chat.text]))
            for lines, chat in ((ones, stored), (others, asked))
        )
        if all(lone):
            return f"only one speaks of {'/'.join(lone[0])}, the other of {'/'.join(lone[1])}"
    return ""


def close_clash(one: Sequence[str], other: Sequence[str]) -> str:
    """Name what lines contradict each other in that differ in little else."""
    for twin in twins_of(one, other):
        if twin.is_close and twin.difference.conflict:
            return twin.difference.conflict
        names = _names([twin.one]) - _words([twin.other]), _names([twin.other]) - _words([twin.one])
        if twin.is_close and all(names):
            return " / ".join("/".join(sorted(side)) for side in names)
    return ""


def exchanged(one: Chat, other: Chat) -> str:
    """Name a line whose things changed places in the other history, small talk or not."""
    heres = {line: _bag(line) for line in _texts(one)}
    theres = {line: _bag(line) for line in _texts(other) if line not in heres}
    for here, words in heres.items():
        for there, others in theres.items():
            if words == others and difference(here, there).conflict:
                return f"{here} / {there}: the same words, exchanged"
    return ""


def _other_reply(one: Chat, other: Chat) -> str:
    heres, theres = _replies(one), _replies(other)
    for asked in heres.keys() & theres.keys():
        if {heres[asked], theres[asked]} == {"yes", "no"}:
            return f"{heres[asked]} / {theres[asked]} to {asked}"
    return ""


def _replies(chat: Chat) -> Mapping[str, Reply]:
    """Return each bare yes or no by what it replies to."""
    return {
        key_of(before): reply_of(text)
        for (_, before), (role, text) in pairwise(chat.history)
        if role == "user" and reply_of(text)
    }


def _texts(chat: Chat) -> list[str]:
    return [line for _, text in chat.history for line in sentences(text)]


def _bag(text: str) -> frozenset[str]:
    return frozenset(token.norm for token in analyse(text).tokens)


def _numbers(lines: Iterable[str]) -> set[str]:
    return {cardinal(number) for line in lines for number in analyse(line).numbers}


def _names(lines: Iterable[str]) -> set[str]:
    tokens = (token for line in lines for token in analyse(line).tokens)
    known = words_of("deictic") | words_of("light")
    return {t.norm for t in tokens if t.name and t.surface.casefold() not in known}


def _words(lines: Iterable[str]) -> set[str]:
    return {token.norm for line in lines for token in analyse(line).tokens}
