"""Exchanges of a chat that the other lacks and its last message has nothing to do with. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from semantic_layer.analysis import analyse
from semantic_layer.chat import Chat, Said
from semantic_layer.differences import key_of
from semantic_layer.referred import words_of_lines
from semantic_layer.small_talk import ENDS_ASKING, is_empty, sentences

_NUM_RECENT = 2  # exchanges before the last message that it may always refer to


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What the user said, up to when he speaks again, and what of it tells anything."""

    said: Sequence[Said]
    user: tuple[str, ...]
    assistant: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        return (*self.user, *self.assistant)


def without_sides(one: Chat, other: Chat) -> tuple[Sequence[Said], Sequence[Said]]:
    """Return both histories without their exchanges on the side.

    Those begin with a question of the user, none of it in the other chat, that is not among the
    latest, and of other things than the last message, what it follows, and what the chat began
    with. What the user adds on other things right after belongs to it.
    """
    return _without(one, other), _without(other, one)


def _without(chat: Chat, other: Chat) -> Sequence[Said]:
    exchanges, others = _exchanges(chat), _exchanges(other)
    known = _keys(others)
    recent = max(0, len(exchanges) - _NUM_RECENT)
    first = _beginning(exchanges, others)
    ends = [*exchanges[first : first + 1], *exchanges[recent:]]
    focus = words_of_lines([chat.text, *(line for each in ends for line in each.lines)])
    kept: list[Said] = []
    on_side = False
    for i, exchange in enumerate(exchanges):
        may_be = i != first and i < recent and _keys([exchange]).isdisjoint(known)
        on_side = may_be and _is_side(exchange, focus, goes_on=on_side)
        kept += [] if on_side else exchange.said
    return kept


def _beginning(exchanges: Sequence[_Exchange], others: Sequence[_Exchange]) -> int:
    """Return the place of the exchange that the other chat begins with, else of the first."""
    begun = next((_keys([each]) for each in others if each.user), set())
    shared = (i for i, each in enumerate(exchanges) if not _keys([each]).isdisjoint(begun))
    telling = (i for i, each in enumerate(exchanges) if each.user)
    return next(shared, next(telling, 0))


def _is_side(exchange: _Exchange, focus: frozenset[str], *, goes_on: bool) -> bool:
    if not words_of_lines(exchange.user).isdisjoint(focus):
        return False
    return goes_on or any(map(_asks, exchange.user))


def _keys(exchanges: Sequence[_Exchange]) -> set[str]:
    return {key_of(line) for exchange in exchanges for line in exchange.lines}


def _exchanges(chat: Chat) -> list[_Exchange]:
    """Divide a history where the user speaks."""
    starts = [i for i, (role, _) in enumerate(chat.history) if role == "user"]
    bounds = pairwise([0, *starts[1:], len(chat.history)])
    return [_exchange(chat.history[start:end]) for start, end in bounds]


def _exchange(said: Sequence[Said]) -> _Exchange:
    lines = [(role, part) for role, text in said for part in sentences(text) if not is_empty(part)]
    user, assistant = (tuple(t for r, t in lines if r == role) for role in ("user", "assistant"))
    return _Exchange(said, user, assistant)


def _asks(part: str) -> bool:
    return bool(ENDS_ASKING.search(part)) or bool(analyse(part).frame)
