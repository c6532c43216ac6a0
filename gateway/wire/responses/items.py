"""Items of the Responses API: ids, their stored form, and the chat messages they make.

An id holds its response's, so an item can be found again by its id alone.
"""

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from gateway.wire.validation import wrong

Item = dict[str, Any]

_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_OTHER = "item"
_ITEM_ID = re.compile(r"^[a-z]+_(?P<response>[0-9a-f]{24})[0-9a-f]{4,}$")
REFERENCE = "item_reference"


def new_response_id() -> str:
    """Return the id of a new response."""
    return "resp_" + os.urandom(12).hex()


def item_id(kind: str, response_id: str, place: int) -> str:
    """Return the id of an item of a response; inputs are counted on from the outputs."""
    return f"{_PREFIXES.get(kind, _OTHER)}_{response_id.removeprefix('resp_')}{place:04x}"


def response_of(id_: str) -> str | None:
    """Return the id of the response that an item belongs to; None if it is not one of ours."""
    found = _ITEM_ID.match(id_)
    return None if found is None else f"resp_{found['response']}"


def input_items(given: str | list[Item] | None) -> list[Item]:
    """Return a request's input as items."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return [{"type": "message", **item} if "role" in item else item for item in given or []]


def stored_items(items: Iterable[Item], response_id: str, first: int) -> list[Item]:
    """Return input items as the API lists them: complete, each with an id."""
    stored: list[Item] = []
    for place, item in enumerate(items, first):
        given = {name: value for name, value in item.items() if value is not None}
        whole = {"id": item_id(str(item.get("type")), response_id, place), **given}
        if whole.get("type") != "reasoning":
            whole.setdefault("status", "completed")
        if isinstance(whole.get("content"), str):
            whole["content"] = [_text_part(whole)]
        stored.append(whole)
    return stored


def _text_part(item: Item) -> Item:
    if item.get("role") == "assistant":
        return {"type": "output_text", "text": item["content"], "annotations": []}
    return {"type": "input_text", "text": item["content"]}


class History:
    """Chat messages made of items; ``origins`` names the field each of them came from.

    What an assistant said, thought and called in a row is one message, as in the chat API.
    """

    def __init__(self, instructions: str | None) -> None:
        self.messages: list[dict[str, Any]] = []
        self.origins: list[str] = []
        self._turn: dict[str, Any] | None = None
        if instructions:
            self._add({"role": "system", "content": instructions}, "instructions")

    def add(self, item: Item, where: str) -> None:
        """Add one item.

        Raises:
            BadRequest: it is malformed, or of a kind that has no meaning here.
        """
        kind = item.get("type")
        read = _READERS.get(kind) if isinstance(kind, str) else None
        if read is None:
            raise wrong(f"{where}.type", f"items of type {str(kind)[:40]!r} are not supported")
        read(self, item, where)

    def _message(self, item: Item, where: str) -> None:
        role = item.get("role")
        if role not in ("user", "assistant", "system", "developer"):
            raise wrong(f"{where}.role", "expected user, assistant, system or developer")
        content = _content(item.get("content"), f"{where}.content")
        if role != "assistant":
            self._add({"role": role, "content": content}, f"{where}.content")
            return
        turn = self._assistant(where, without="content")
        turn["content"] = content

    def _call(self, item: Item, where: str) -> None:
        function = {name: _string(item, name, where) for name in ("name", "arguments")}
        call = {"id": _id(item, "call_id", where), "type": "function", "function": function}
        self._assistant(where).setdefault("tool_calls", []).append(call)

    def _output(self, item: Item, where: str) -> None:
        content = _content(item.get("output"), f"{where}.output")
        call_id = _id(item, "call_id", where)
        self._add({"role": "tool", "tool_call_id": call_id, "content": content}, f"{where}.output")

    def _reasoning(self, item: Item, where: str) -> None:
        texts = [
            _string(part, "text", f"{where}.{name}[{at}]")
            for name in ("content", "summary")
            for at, part in enumerate(_list(item, name, where))
        ]
        if texts:
            turn = self._assistant(where, without="content", or_without="tool_calls")
            turn["reasoning_content"] = turn.get("reasoning_content", "") + "".join(texts)

    def _assistant(self, where: str, *, without: str = "", or_without: str = "") -> dict[str, Any]:
        """Return the assistant's open message, a new one if what may not be there is."""
        turn = self._turn
        if turn is None or turn.get(without) is not None or turn.get(or_without) is not None:
            turn = {"role": "assistant", "content": None}
            self._add(turn, where)
            self._turn = turn
        return turn

    def _add(self, message: dict[str, Any], origin: str) -> None:
        self._turn = None
        self.messages.append(message)
        self.origins.append(origin)


_READERS: dict[str, Callable[[History, Item, str], None]] = {
    "message": History._message,  # noqa: SLF001 - the class's own table
    "function_call": History._call,  # noqa: SLF001
    "function_call_output": History._output,  # noqa: SLF001
    "reasoning": History._reasoning,  # noqa: SLF001
}


def _content(content: Any, where: str) -> str | list[Item]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise wrong(where, "expected text or a list of parts")
    parts = [_part(part, f"{where}[{at}]") for at, part in enumerate(content)]
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def _part(part: Any, where: str) -> Item:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "refusal", "refusal": text}
        case {"type": "input_image", "image_url": str(url)}:
            detail = part.get("detail")
            wished = {} if detail in (None, "auto") else {"detail": detail}
            return {"type": "image_url", "image_url": {"url": url, **wished}}
        case {"type": "input_file", "file_data": str(data)}:
            name = part.get("filename")
            named = {"filename": name} if isinstance(name, str) else {}
            return {"type": "file", "file": {"file_data": data, **named}}
        case {"type": "input_audio", "input_audio": dict(audio)}:
            return {"type": "input_audio", "input_audio": audio}
        case {"type": "input_image" | "input_file"}:
            raise wrong(where, "files kept by the provider are not supported; send the data")
        case {"type": str(kind)} if kind not in ("input_text", "output_text", "text", "refusal"):
            raise wrong(f"{where}.type", f"parts of type {kind[:40]!r} are not supported")
    raise wrong(where, "expected a part with a type and its text")


def _list(item: Item, name: str, where: str) -> list[Any]:
    value = item.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(f"{where}.{name}", "expected a list")
    return value


def _id(item: Item, name: str, where: str) -> str:
    if not (value := _string(item, name, where)):
        raise wrong(f"{where}.{name}", "is empty")
    return value


def _string(item: Any, name: str, where: str) -> str:
    value = item.get(name) if isinstance(item, dict) else None
    if not isinstance(value, str):
        raise wrong(f"{where}.{name}", "expected text")
    return value
