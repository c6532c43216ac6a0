"""Find tool calls in an answer's text as it comes, wherever the pieces are cut. Pure.

The text was generated in the format's grammar, so a call that was begun is well formed; it may be
cut off anywhere.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.backends.tool_format import ToolFormat

Call = dict[str, Any]

_PAIR = re.compile(r"\s*,?\s*([^=,\s]+)=")
_decode_value = json.JSONDecoder().raw_decode


@dataclass(slots=True)
class Found:
    """What a piece of text gave: ``text`` stands before all of ``calls``, OpenAI's deltas."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)


class ToolParser:
    """Follows one answer. Space between text and calls belongs to neither."""

    def __init__(self, form: ToolFormat) -> None:
        self.num_calls = 0
        self._form = form
        self._state: Literal["text", "plain", "name", "arguments", "between"] = "text"
        self._held = ""
        self._prefix = ""
        self._arguments = _Json()

    def push(self, text: str) -> Found:
        """Take more text; return what is certain."""
        self._held += text
        found = Found()
        while self._advance(found):
            pass
        return found

    def flush(self) -> Found:
        """End the answer; a trigger that was not completed is text."""
        held, self._held = self._held, ""
        return Found(held if self._state in ("text", "plain") else "")

    def _advance(self, found: Found) -> bool:
        """Make one step; say whether another may follow."""
        match self._state:
            case "text":
                return self._find_trigger(found)
            case "plain":
                found.text += self._take(len(self._held))
                return False
            case "name":
                return self._read_name(found)
            case "arguments":
                return self._read_arguments(found)
            case "between":
                return self._find_next()

    def _find_trigger(self, found: Found) -> bool:
        trigger = self._form.trigger
        at = self._held.find(trigger)
        if at == 0 or (at > 0 and self._form.anywhere):
            found.text += self._take(at).rstrip()
            self._take(len(trigger))
            self._begin_call(self._form.behind_trigger)
            return True
        if not self._form.anywhere:
            if trigger.startswith(self._held):
                return False
            self._state = "plain"
            return True
        found.text += self._take(len(self._held) - _num_open(self._held, trigger))
        return False

    def _begin_call(self, prefix: str) -> None:
        self._state, self._prefix = "name", prefix

    def _read_name(self, found: Found) -> bool:
        begin = len(self._prefix)
        end = self._held.find(self._form.after_name, begin)
        if end < 0:
            return False
        name = self._take(end + len(self._form.after_name))[begin:end]
        function = {"name": name, "arguments": ""}
        call = {"index": self.num_calls, "id": self._form.new_id(), "type": "function"}
        found.calls.append({**call, "function": function})
        self.num_calls += 1
        self._state = "arguments"
        self._arguments = _Json(opened=self._form.python)
        return True

    def _read_arguments(self, found: Found) -> bool:
        end = self._arguments.scan(self._held)
        if self._form.python:
            if end is None:
                self._arguments = _Json(opened=True)
                return False
            self._add(found, _pairs_to_json(self._take(end)[:-1]))
        else:
            self._add(found, self._take(len(self._held) if end is None else end))
        if end is None:
            return False
        self._state = "between"
        return True

    def _add(self, found: Found, arguments: str) -> None:
        if arguments:
            found.calls.append({"index": self.num_calls - 1, "function": {"arguments": arguments}})

    def _find_next(self) -> bool:
        form = self._form
        before = "" if form.python else form.after_arguments
        following = before + form.separator + form.before_name
        if len(self._held) < len(following) or not self._held.startswith(following):
            return False
        self._take(len(before + form.separator))
        self._begin_call(form.before_name)
        return True

    def _take(self, num_chars: int) -> str:
        taken, self._held = self._held[:num_chars], self._held[num_chars:]
        return taken


class _Json:
    """Finds the end of an object or, when ``opened``, of what an opening bracket began."""

    def __init__(self, *, opened: bool = False) -> None:
        self._depth = int(opened)
        self._in_string = False
        self._escaped = False

    def scan(self, text: str) -> int | None:
        """Return the place behind the end; None when it is not in this text."""
        for at, char in enumerate(text, 1):
            if self._in_string:
                self._in_string = self._escaped or char != '"'
                self._escaped = char == "\\" and not self._escaped
            elif char == '"':
                self._in_string = True
            elif char in "{[(":
                self._depth += 1
            elif char in "}])":
                self._depth -= 1
                if self._depth == 0:
                    return at
        return None


def _num_open(text: str, trigger: str) -> int:
    """Return how many characters at the end may be space and the beginning of a trigger."""
    for length in range(min(len(trigger) - 1, len(text)), -1, -1):
        if text.endswith(trigger[:length]):
            before = text[: len(text) - length]
            return len(text) - len(before.rstrip())
    raise AssertionError("every text ends with nothing")


def _pairs_to_json(pairs: str) -> str:
    """Turn ``key=value`` pairs with JSON values into an object, the values as they stand."""
    members, at = [], 0
    while at < len(pairs) and (key := _PAIR.match(pairs, at)) is not None:
        _, end = _decode_value(pairs, key.end())
        members.append(f"{json.dumps(key[1], ensure_ascii=False)}: {pairs[key.end() : end]}")
        at = end
    return "{" + ", ".join(members) + "}"
