"""Anthropic's turns and content blocks as chat messages."""

import json
from collections.abc import Callable
from typing import Any

from gateway.wire.validation import wrong

_Part = dict[str, Any]


class Turns:
    """Chat messages under construction; ``origins`` names the field each of them came from."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.origins: list[str] = []

    def system(self, content: Any, where: str) -> None:
        """Add a system prompt; nothing where there is none."""
        if content:
            self._add({"role": "system", "content": _texts(content, where)}, where)

    def add(self, message: dict[str, Any], where: str) -> None:
        """Add one validated turn; a user's tool results become messages of their own.

        Raises:
            BadRequest: a block is malformed or of a kind that has no meaning here.
        """
        role, content = message["role"], message["content"]
        if role == "system":
            self.system(content, where)
        elif isinstance(content, str):
            self._add({"role": role, "content": content}, f"{where}.content")
        elif role == "assistant":
            self._add(_assistant(content, f"{where}.content"), f"{where}.content")
        else:
            self._user(content, f"{where}.content")

    def _user(self, blocks: list[dict[str, Any]], where: str) -> None:
        parts: list[_Part] = []
        for at, block in enumerate(blocks):
            here = f"{where}[{at}]"
            if block["type"] == "tool_result":
                self._add(_tool_result(block, here), here)
            else:
                parts.append(_part(block, here))
        if parts or not blocks:
            self._add({"role": "user", "content": _plain(parts)}, where)

    def _add(self, message: dict[str, Any], origin: str) -> None:
        self.messages.append(message)
        self.origins.append(origin)


def _assistant(blocks: list[dict[str, Any]], where: str) -> dict[str, Any]:
    parts: list[_Part] = []
    calls: list[dict[str, Any]] = []
    thoughts: list[str] = []
    for at, block in enumerate(blocks):
        here = f"{where}[{at}]"
        match block["type"]:
            case "tool_use":
                calls.append(_tool_call(block, here))
            case "thinking":
                thoughts.append(_string(block, "thinking", here))
            case "redacted_thinking":
                pass  # only the provider that sealed it can read it
            case _:
                parts.append(_part(block, here))
    message: dict[str, Any] = {"role": "assistant", "content": _plain(parts)}
    if calls:
        message["tool_calls"] = calls
        message["content"] = message["content"] or None
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    return message


def _tool_call(block: dict[str, Any], where: str) -> dict[str, Any]:
    given = block.get("input")
    if not isinstance(given, dict):
        raise wrong(f"{where}.input", "expected an object")
    return {
        "id": _id(block, "id", where),
        "type": "function",
        "function": {
            "name": _string(block, "name", where),
            "arguments": json.dumps(given, ensure_ascii=False),
        },
    }


def _tool_result(block: dict[str, Any], where: str) -> dict[str, Any]:
    content, parts = block.get("content"), list[_Part]()
    if isinstance(content, list):
        parts = [
            _part(_block(inner, f"{where}.content[{at}]"), f"{where}.content[{at}]")
            for at, inner in enumerate(content)
        ]
    elif isinstance(content, str):
        parts = [{"type": "text", "text": content}]
    elif content is not None:
        raise wrong(f"{where}.content", "expected text or a list of blocks")
    if block.get("is_error"):
        parts.insert(0, {"type": "text", "text": "Error: " if parts else "Error"})
    return {
        "role": "tool",
        "tool_call_id": _id(block, "tool_use_id", where),
        "content": _plain(parts),
    }


def _block(block: Any, where: str) -> dict[str, Any]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise wrong(where, "expected a block with a type")
    return block


def _part(block: dict[str, Any], where: str) -> _Part:
    read = _PARTS.get(block["type"])
    if read is None:
        raise wrong(f"{where}.type", f"blocks of type {block['type'][:40]!r} are not supported")
    return read(block, where)


def _text(block: dict[str, Any], where: str) -> _Part:
    return {"type": "text", "text": _string(block, "text", where)}


def _image(block: dict[str, Any], where: str) -> _Part:
    return {"type": "image_url", "image_url": {"url": _url(block.get("source"), where)}}


def _document(block: dict[str, Any], where: str) -> _Part:
    source = block.get("source")
    match source:
        case {"type": "text", "data": str(text)}:
            title = block.get("title")
            return {"type": "text", "text": f"{title}\n{text}" if title else text}
        case {"type": "base64"}:
            file = {"file_data": _url(source, where), "filename": block.get("title") or "document"}
            return {"type": "file", "file": file}
    raise wrong(f"{where}.source", "only documents as text or base64 are supported")


def _url(source: Any, where: str) -> str:
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return f"data:{kind};base64,{data}"
        case {"type": "url", "url": str(url)}:
            return url
    raise wrong(f"{where}.source", "expected base64 data with its media_type, or a url")


_PARTS: dict[str, Callable[[dict[str, Any], str], _Part]] = {
    "text": _text,
    "image": _image,
    "document": _document,
}


def _texts(content: Any, where: str) -> str | list[_Part]:
    if isinstance(content, str):
        return content
    return _plain([_text(block, f"{where}[{at}]") for at, block in enumerate(content)])


def _plain(parts: list[_Part]) -> str | list[_Part]:
    """Return the text of parts that are one text or none, else the parts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def _id(block: dict[str, Any], name: str, where: str) -> str:
    if not (value := _string(block, name, where)):
        raise wrong(f"{where}.{name}", "is empty")
    return value


def _string(block: dict[str, Any], name: str, where: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise wrong(f"{where}.{name}", "expected text")
    return value
