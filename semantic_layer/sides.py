"""Exchanges of one chat that the other lacks and its last message has nothing to do with. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from semantic_layer.analysis import analyse
from semantic_layer.chat import Chat, Said
from semantic_layer.differences import key_of
from semantic_layer.small_talk import ENDS_ASKING, is_empty, sentences

_NUM_RECENT = 2  # exchanges before the last message that it may always refer to


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What the user said, and all that the assistant said to it."""

    said: tuple[Said, ...]

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [
            (role, part)
            for role, text in self.said
            for part in sentences(text)
            if not is_empty(part)
        ]


def without_sides(one: Chat, other: Chat) -> tuple[Sequence[Said], Sequence[Said]]:
    """Return both histories, the longer one without its exchanges on the side.

    An exchange on the side is a question of the user and its answer, none of it in the other chat,
    not among the latest, and of other things than the last message and what it follows. Where each
    chat has some that the other lacks, all stay.
    """
    extra_one, extra_other = _sides(one, other), _sides(other, one)
    if bool(extra_one) == bool(extra_other):
        return one.history, other.history
    return _without(one, extra_one), _without(other, extra_other)


def _without(chat: Chat, sides: set[int]) -> Sequence[Said]:
    kept = [exchange for i, exchange in enumerate(_exchanges(chat)) if i not in sides]
    return [said for exchange in kept for said in exchange.said]


def _exchanges(chat: Chat) -> list[_Exchange]:
    starts = [i for i, (role, _) in enumerate(chat.history) if role == "user"]
    bounds = pairwise([0, *starts[1:], len(chat.history)])
    return [_Exchange(chat.history[start:end]) for start, end in bounds]


def _sides(chat: Chat, other: Chat) -> set[int]:
    known = {key_of(part) for _, text in other.history for part in sentences(text)}
    exchanges = _exchanges(chat)
    recent = exchanges[-_NUM_RECENT:]
    focus = _words([chat.text, *(text for e in recent for _, text in e.said)])
    return {
        i
        for i, exchange in enumerate(exchanges[:-_NUM_RECENT])
        if exchange.lines
        and all(key_of(part) not in known for _, part in exchange.lines)
        and all(role != "user" or _only_asks(part) for role, part in exchange.lines)
        and _words([part for role, part in exchange.lines if role == "user"]).isdisjoint(focus)
    }


def _only_asks(part: str) -> bool:
    return bool(ENDS_ASKING.search(part)) or bool(analyse(part).frame)


def _words(texts: Sequence[str]) -> set[str]:
    return {token.norm for text in texts for token in analyse(text).content if not token.weak}
