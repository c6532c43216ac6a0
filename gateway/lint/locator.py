"""Where in a request a prompt parts: its field, the character in it, and the token."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from gateway.errors import BadRequest
from gateway.lint.hits import ID_BYTES
from gateway.lint.judge import Judged
from gateway.lint.logged import Logged, value_at
from gateway.lint.tokens import PromptTokens
from gateway.lint.turn import TOOLS, Turns, calls_of, content_text

CUT_CHARS = 200  # behind a place whose token is told
MEASURED_CHARS = 50_000  # behind a place whose tokens are counted

_MESSAGE = re.compile(r"(?:messages|\binput)(?:\[\d+\])*?\[(\d+)\](?:\.|$)")
_CONTENT = re.compile(r"\.content$")
_MARK = "\ue000"
_MARK_TOOL = {"type": "function", "function": {"name": _MARK}}

Text = TypeVar("Text", str, bytes)


@dataclass(frozen=True, slots=True)
class Location:
    """``token`` counts in the rendered prompt; None when that cannot be rendered.

    Behind it stand ``num_chars`` of the turns' texts, in ``num_tokens`` tokens with all that the
    template writes there.
    """

    field: str
    message: int | None
    char: int
    token: int | None
    num_chars: int
    num_tokens: float


class Locator:
    """Locates faults, with the tokenizer and template of one model."""

    def __init__(self, tokens: PromptTokens) -> None:
        self._tokens = tokens

    def locate(self, logged: Logged, turns: Turns, judged: Judged) -> Location:
        """Say where a fault of a request stands."""
        field, char = _field(logged, turns, judged, shows_ids=self._tokens.shows_call_ids)
        found = _MESSAGE.search(turns.fields[judged.turn])
        message = int(found[1]) if found else None
        before = sum(len(turn.text) for turn in turns.turns[: judged.turn]) + judged.char
        num_chars = max(1, turns.num_chars - before)
        rendered = self._rendered(logged, turns, judged)
        if rendered is None:
            text = turns.turns[judged.turn].text[judged.char :][:MEASURED_CHARS] or "\n"
            rate = self.num_tokens(text) / len(text)
            return Location(field, message, char, None, num_chars, num_chars * rate)
        whole, cut = rendered
        at = _num_common(whole, cut)
        begins = (self._tokens.encode(text[: at + CUT_CHARS]) for text in (whole, cut))
        token = _num_common(*begins) // ID_BYTES
        window = whole[at : at + MEASURED_CHARS] or "\n"
        num_tokens = self.num_tokens(window) * (len(whole) - at) / len(window)
        return Location(field, message, char, token, num_chars, num_tokens)

    def num_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._tokens.encode(text)) // ID_BYTES

    def _rendered(self, logged: Logged, turns: Turns, judged: Judged) -> tuple[str, str] | None:
        """Render the request, and once more with a mark put where the fault is."""
        messages, tools = list(logged.messages), list(logged.tools)
        turn = turns.turns[judged.turn]
        if turn.role == TOOLS:
            tools[turn.text[: judged.char].count("\n") :] = [_MARK_TOOL]
        else:
            at = judged.turn - any(turn.role == TOOLS for turn in turns.turns[: judged.turn])
            marked = turn.text[: judged.char] + _MARK + turn.text[judged.char :]
            messages[at] = {"role": messages[at]["role"], "content": marked}
        try:
            whole = self._tokens.render(logged.messages, logged.tools)
            return whole, self._tokens.render(messages, tools)
        except BadRequest:
            return None


def _field(logged: Logged, turns: Turns, judged: Judged, *, shows_ids: bool) -> tuple[str, int]:
    """Name the field whose text holds a character of a turn, and where in that text it is."""
    field, turn = turns.fields[judged.turn], turns.turns[judged.turn]
    if turn.role == TOOLS:
        return _tool_field(logged, judged, turn.text)
    at = judged.turn - any(turn.role == TOOLS for turn in turns.turns[: judged.turn])
    message = logged.messages[at]
    name, calls = calls_of(message, shows_ids=shows_ids)
    start = len(content_text(message.get("content"))) + 1
    if not calls or judged.char < start or not _CONTENT.search(field):
        return field, judged.char
    path, char = json_place(calls, judged.char - start)
    return f"{_CONTENT.sub('', field)}.{name}{path}", char


def _tool_field(logged: Logged, judged: Judged, text: str) -> tuple[str, int]:
    if judged.cause == "tool_order":
        return logged.tools_field, judged.char
    at = text[: judged.char].count("\n")
    char = judged.char - (text.rfind("\n", 0, judged.char) + 1)
    listed = value_at(logged.row, logged.tools_field)
    is_as_sent = isinstance(listed, list) and at < len(listed) and listed[at] == logged.tools[at]
    path, char = json_place(logged.tools[at], char) if is_as_sent else ("", char)
    return f"{logged.tools_field}[{at}]{path}", char


def json_place(value: Any, char: int) -> tuple[str, int]:
    """Return the path of what stands at a character of JSON without spaces, and where in it.

    In a string it is a character of its text; at a key, of the object's JSON.
    """
    for step, inner, start, end in _parts(value):
        if start <= char < end:
            path, at = json_place(inner, char - start)
            return step + path, at
    if isinstance(value, str):
        return "", len(_unescaped(_dump(value)[1 : max(1, char)]))
    return "", char


def _parts(value: Any) -> Iterator[tuple[str, Any, int, int]]:
    """Give the parts of an object or list: step, value, and where its JSON begins and ends."""
    at = 1
    items: list[tuple[str, Any, int]] = []
    if isinstance(value, dict):
        items = [(f".{key}", inner, len(_dump(str(key))) + 1) for key, inner in value.items()]
    elif isinstance(value, list):
        items = [(f"[{place}]", inner, 0) for place, inner in enumerate(value)]
    for step, inner, before in items:
        start = at + before
        at = start + len(_dump(inner))
        yield step, inner, start, at
        at += 1


def _dump(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _unescaped(part: str) -> str:
    """Read the part of a JSON string up to a character, which may stand in an escape."""
    while part:
        try:
            return str(msgspec.json.decode(f'"{part}"'))
        except msgspec.DecodeError:
            part = part[:-1]
    return ""


def _num_common(a: Text, b: Text) -> int:
    """Count the characters, or bytes, that both begin with."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
