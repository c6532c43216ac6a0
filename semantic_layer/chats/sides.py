"""Exchanges of a chat that the other lacks and its last message has nothing to do with. Pure."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from semantic_layer.chats.chat import Chat, Said
from semantic_layer.chats.differences import key_of
from semantic_layer.chats.referred import words_of_lines
from semantic_layer.chats.small_talk import ENDS_ASKING, is_empty, sentences
from semantic_layer.text.analysis import analyse

_NUM_RECENT = 2  # exchanges before the last message that it may always refer to
_MOST_NAMED = 24  # signs after "back to" in which stands to what
_RETURNS = re.compile(
    r"\b(?:back|returning|coming back|going back) (?:to|on)\b|(?:回到|说回|话说回|再说)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Exchange:
    """What the user said, up to when he speaks again; what of it tells anything, read when asked.

    ``lines`` are (role, line, key of the line).
    """

    said: Sequence[Said]
    lines: tuple[tuple[str, str, str], ...]

    @cached_property
    def user(self) -> tuple[str, ...]:
        return tuple(line for role, line, _ in self.lines if role == "user" and not is_empty(line))

    @cached_property
    def telling(self) -> tuple[str, ...]:
        return tuple(line for _, line, _ in self.lines if not is_empty(line))

    def shares(self, known: Collection[str]) -> bool:
        """Say whether a line that tells anything is among the known ones."""
        return any(key in known and not is_empty(line) for _, line, key in self.lines)

    def is_within(self, known: Collection[str]) -> bool:
        """Say whether all of its lines are known."""
        return all(key in known for _, _, key in self.lines)


def without_sides(one: Chat, other: Chat) -> tuple[Sequence[Said], Sequence[Said]]:
    """Return both histories without their exchanges on the side.

    Those begin with a question of the user, none of it in the other chat, that is not among the
    latest, and of other things than the last message, what it follows, and what the chat began
    with. What the user adds on other things right after belongs to it.
    """
    ones, others = _exchanges(one), _exchanges(other)
    return _without(one, ones, others), _without(other, others, ones)


def _without(
    chat: Chat, exchanges: Sequence[_Exchange], others: Sequence[_Exchange]
) -> Sequence[Said]:
    known = {key for exchange in others for _, _, key in exchange.lines}
    recent = _num_not_recent(chat, exchanges)
    first = _beginning(exchanges, others)
    ends = [*exchanges[first : first + 1], *exchanges[recent:]]
    focus = words_of_lines([chat.text, *(line for each in ends for line in each.telling)])
    kept: list[Said] = []
    on_side = False
    for i, exchange in enumerate(exchanges):
        may_be = i != first and i < recent and not exchange.is_within(known)
        may_be = may_be and not exchange.shares(known)
        on_side = may_be and _is_side(exchange, focus, goes_on=on_side)
        kept += [] if on_side else exchange.said
    return kept


def _num_not_recent(chat: Chat, exchanges: Sequence[_Exchange]) -> int:
    """Count the exchanges before those that the last message may always refer to.

    A message that says what it comes back to refers to that, and not to what came between.
    """
    count = max(0, len(exchanges) - _NUM_RECENT)
    back = _RETURNS.search(chat.text)
    if back is None:
        return count
    named = words_of_lines([chat.text[back.end() :][:_MOST_NAMED]])
    of_it = [not words_of_lines(each.user).isdisjoint(named) for each in exchanges]
    return len(exchanges) if any(of_it) and not of_it[-1] else count


def _beginning(exchanges: Sequence[_Exchange], others: Sequence[_Exchange]) -> int:
    """Return the place of the exchange that the other chat begins with, else of the first."""
    begun = next((each for each in others if each.user), None)
    keys = {key_of(line) for line in begun.telling} if begun is not None else set()
    shared = (i for i, each in enumerate(exchanges) if each.shares(keys))
    telling = (i for i, each in enumerate(exchanges) if each.user)
    return next(shared, next(telling, 0))


def _is_side(exchange: _Exchange, focus: frozenset[str], *, goes_on: bool) -> bool:
    if not words_of_lines(exchange.user).isdisjoint(focus):
        return False
    return goes_on or any(map(_asks, exchange.user))


def _exchanges(chat: Chat) -> list[_Exchange]:
    """Divide a history where the user speaks."""
    starts = [i for i, (role, _) in enumerate(chat.history) if role == "user"]
    bounds = pairwise([0, *starts[1:], len(chat.history)])
    return [_exchange(chat.history[start:end]) for start, end in bounds]


def _exchange(said: Sequence[Said]) -> _Exchange:
    lines = tuple((role, part, key_of(part)) for role, text in said for part in sentences(text))
    return _Exchange(said, lines)


def _asks(part: str) -> bool:
    return bool(ENDS_ASKING.search(part)) or bool(analyse(part).frame)
