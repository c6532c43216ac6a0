"""Exchanges of one chat that the other lacks and its last message has nothing to do with. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from semantic_layer.analysis import analyse
from semantic_layer.chat import Chat, Said
from semantic_layer.differences import key_of
from semantic_layer.small_talk import ENDS_ASKING, is_empty, sentences

_NUM_RECENT = 2  # exchanges before the last message that it may always refer to


def without_sides(one: Chat, other: Chat) -> tuple[Sequence[Said], Sequence[Said]]:
    """Return both histories, the longer one without its exchanges on the side.

    An exchange on the side is a question of the user and its answer, none of it in the other chat,
    not among the latest, and of other things than the last message and what it follows. Where each
    chat has some that the other lacks, all stay.
    """
    longer, shorter = (one, other) if len(one.history) > len(other.history) else (other, one)
    if len(longer.history) == len(shorter.history) or _sides(shorter, longer):
        return one.history, other.history
    kept = _without(longer, _sides(longer, shorter))
    return (kept, other.history) if longer is one else (one.history, kept)


def _without(chat: Chat, sides: set[int]) -> Sequence[Said]:
    kept = [exchange for i, exchange in enumerate(_exchanges(chat)) if i not in sides]
    return [said for exchange in kept for said in exchange]


def _exchanges(chat: Chat) -> list[Sequence[Said]]:
    """Divide a history where the user speaks."""
    starts = [i for i, (role, _) in enumerate(chat.history) if role == "user"]
    bounds = pairwise([0, *starts[1:], len(chat.history)])
    return [chat.history[start:end] for start, end in bounds]


def _sides(chat: Chat, other: Chat) -> set[int]:
    known = {key_of(part) for _, text in other.history for part in sentences(text)}
    exchanges = _exchanges(chat)
    recent = exchanges[-_NUM_RECENT:]
    focus = _words([chat.text, *(text for exchange in recent for _, text in exchange)])
    earlier = enumerate(exchanges[:-_NUM_RECENT])
    return {i for i, exchange in earlier if _is_side(exchange, known, focus)}


def _is_side(exchange: Sequence[Said], known: set[str], focus: set[str]) -> bool:
    lines = [
        (role, part) for role, text in exchange for part in sentences(text) if not is_empty(part)
    ]
    if any(key_of(part) in known for _, part in lines):
        return False
    asked = [part for role, part in lines if role == "user"]
    return bool(asked) and all(map(_only_asks, asked)) and _words(asked).isdisjoint(focus)


def _only_asks(part: str) -> bool:
    return bool(ENDS_ASKING.search(part)) or bool(analyse(part).frame)


def _words(texts: Sequence[str]) -> set[str]:
    return {token.norm for text in texts for token in analyse(text).content if not token.weak}
