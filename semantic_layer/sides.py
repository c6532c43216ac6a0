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
    with. What the user adds on the same belongs to it, unless the assistant asked for it.
    """
    return _without(one, other), _without(other, one)


def _without(chat: Chat, other: Chat) -> Sequence[Said]:
    known = {key_of(part) for _, text in other.history for part in sentences(text)}
    exchanges = _exchanges(chat)
    recent = max(0, len(exchanges) - _NUM_RECENT)
    first = _first(exchanges, known)
    ends = [*exchanges[first : first + 1], *exchanges[recent:]]
    focus = words_of_lines([chat.text, *(line for each in ends for line in each.lines)])
    kept: list[Said] = []
    on_side = False
    for i, exchange in enumerate(exchanges):
        before = exchanges[i - 1].assistant if i else ()
        on_side = (
            i != first and i < recent and _is_side(exchange, before, known, focus, goes_on=on_side)
        )
        kept += [] if on_side else exchange.said
    return kept


def _first(exchanges: Sequence[_Exchange], known: set[str]) -> int:
    """Return the place of the first exchange that both chats have, else of the first that tells."""
    shared = (i for i, e in enumerate(exchanges) if any(key_of(line) in known for line in e.user))
    telling = (i for i, exchange in enumerate(exchanges) if exchange.user)
    return next(shared, next(telling, 0))


def _is_side(
    exchange: _Exchange,
    before: Sequence[str],
    known: set[str],
    focus: frozenset[str],
    *,
    goes_on: bool,
) -> bool:
    if any(key_of(line) in known for line in exchange.lines):
        return False
    if not words_of_lines(exchange.user).isdisjoint(focus):
        return False
    if exchange.user and all(map(_only_asks, exchange.user)):
        return True
    was_asked = any(ENDS_ASKING.search(line) for line in before)
    return goes_on and not was_asked


def _exchanges(chat: Chat) -> list[_Exchange]:
    """Divide a history where the user speaks."""
    starts = [i for i, (role, _) in enumerate(chat.history) if role == "user"]
    bounds = pairwise([0, *starts[1:], len(chat.history)])
    return [_exchange(chat.history[start:end]) for start, end in bounds]


def _exchange(said: Sequence[Said]) -> _Exchange:
    lines = [(role, part) for role, text in said for part in sentences(text) if not is_empty(part)]
    user, assistant = (tuple(t for r, t in lines if r == role) for role in ("user", "assistant"))
    return _Exchange(said, user, assistant)


def _only_asks(part: str) -> bool:
    return bool(ENDS_ASKING.search(part)) or bool(analyse(part).frame)
