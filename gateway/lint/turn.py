"""A prompt as turns, each cut into pieces that stay alike when what stands before them changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gateway.lint.logged import Logged, Row
from gateway.lint.pieces import LineCutter, Turn

TOOLS = "tools"
MAX_CACHED_CHARS = 16 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """A prompt: ``fields`` name where the turns stand in their row."""

    turns: tuple[Turn, ...]
    fields: tuple[str, ...]
    num_chars: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_chars", sum(len(turn.text) for turn in self.turns))


class TurnMaker:
    """Makes turns; those seen of late are made once, and so are lines that several of them hold.

    ``shows_call_ids`` says whether the ids of tool calls are part of a prompt.
    """

    def __init__(self, *, shows_call_ids: bool) -> None:
        self._shows_call_ids = shows_call_ids
        self._young: dict[tuple[str, str], Turn] = {}
        self._old: dict[tuple[str, str], Turn] = {}
        self._num_chars = 0
        self._lines = LineCutter()

    def turns(self, logged: Logged) -> Turns:
        """Cut a request up; the tools stand behind the system prompt, as templates put them."""
        made = [self.turn(_role(message), self._text(message)) for message in logged.messages]
        fields = list(logged.fields)
        if logged.tools:
            at = 1 if made[0].role == "system" else 0
            made.insert(at, self.turn(TOOLS, "\n".join(map(_dump, logged.tools))))
            fields.insert(at, logged.tools_field)
        return Turns(tuple(made), tuple(fields))

    def _text(self, message: Row) -> str:
        text = content_text(message.get("content"))
        _, calls = calls_of(message, shows_ids=self._shows_call_ids)
        return f"{text}\n{_dump(calls)}" if calls else text

    def turn(self, role: str, text: str) -> Turn:
        """Cut one text up."""
        key = (role, text)
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key) or self._lines.turn(role, text)
            self._young[key] = found
            self._num_chars += len(text)
            if self._num_chars > MAX_CACHED_CHARS:
                self._old, self._young, self._num_chars = self._young, {}, 0
        return found


def content_text(content: Any) -> str:
    """Return the text of a message's content; what is no text counts as its JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    parts = content if isinstance(content, Sequence) else [content]
    return "".join(map(_part_text, parts))


def _part_text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else _dump(part)


def _role(message: Row) -> str:
    return "system" if message["role"] == "developer" else str(message["role"])


def calls_of(message: Row, *, shows_ids: bool) -> tuple[str, Any]:
    """Return the tool calls of a message as a prompt shows them, and the name of their field."""
    if calls := message.get("tool_calls"):
        return "tool_calls", calls if shows_ids else _without_ids(calls)
    return ("function_call", call) if (call := message.get("function_call")) else ("", None)


def _without_ids(calls: Any) -> Any:
    return [
        {key: value for key, value in call.items() if key != "id"}
        if isinstance(call, dict)
        else call
        for call in (calls if isinstance(calls, list) else [calls])
    ]


def _dump(value: Any) -> str:
    return msgspec.json.encode(value).decode()
