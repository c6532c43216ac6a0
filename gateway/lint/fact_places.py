"""Where the facts that are taken out of a system prompt stand in its conversation. Pure.

They stand behind the message with which they came, and stay there in all requests that go on from
it: what was told at the start of a session stays near the start, and what changes with every
request stands at the end.
"""

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.lint.logged import Logged, Row, value_at
from gateway.lint.turn import content_text

MAX_PLACES = 200_000
STAYS = 0  # in the system prompt

_ENDS = ("user", "tool", "function")
_ITEM = re.compile(r"(.+)\[(\d+)\]((?:\.\w+)*)\.(?:content|output)")


class FactPlaces:
    """Remembers where the facts of the requests before were put."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, str], int] = {}

    def place(self, logged: Logged, facts: str) -> int:
        """Return the message behind which the facts stand, `STAYS` where they are to stay.

        A request that ends with a model's words, which it is to go on with, gets nothing behind it.
        """
        ends = list(_ends(logged.messages))
        if not ends:
            return STAYS
        known = (self._places.get((end, facts)) for end in reversed(ends))
        last = len(logged.messages) - 1
        may_end = logged.messages[last]["role"] in _ENDS
        place = next((at for at in known if at is not None), last if may_end else STAYS)
        place = place if can_hold(logged, place) else STAYS
        if len(self._places) < MAX_PLACES:
            self._places[ends[-1], facts] = place
        return place


def can_hold(logged: Logged, at: int) -> bool:
    """Say whether a system message can stand behind a message: both are items of one list."""
    ours, first = (_ITEM.fullmatch(logged.fields[i]) for i in (at, 0))
    if ours is None or at == STAYS:
        return False
    return logged.fields[0].endswith("instructions") or bool(first and first[1] == ours[1])


def put(row: Row, logged: Logged, at: int, text: str) -> None:
    """Put a message behind message ``at``, in the form of the system prompt."""
    found, first = (_ITEM.fullmatch(logged.fields[i]) for i in (at, 0))
    assert found is not None, "can_hold was asked"
    items = value_at(row, found[1])
    if first is None:
        item = {"role": "system", "content": text}
    else:
        item = copy.deepcopy(items[int(first[2])])
        holder = value_at({"item": item}, f"item{first[3]}")
        holder["content"] = text
        holder.pop("id", None)
    items.insert(int(found[2]) + 1, item)


def is_marked(parts: Any) -> bool:
    """Say whether a system prompt is blocks with a breakpoint of Anthropic's prompt cache."""
    return isinstance(parts, list) and any("cache_control" in part for part in parts)


def drop_empty(row: Row, field: str) -> None:
    """Take a message away whose text was nothing but facts."""
    found = _ITEM.fullmatch(field)
    if found is not None and value_at(row, field) == "":
        del value_at(row, found[1])[int(found[2])]


def _ends(messages: Sequence[Row]) -> Iterator[int]:
    """Hash what was said up to each message, without the system prompt."""
    said = 0
    for message in messages[1:]:
        text = content_text(message.get("content"))
        said = hash((said, message["role"], text, repr(message.get("tool_calls"))))
        yield said
