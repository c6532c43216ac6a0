"""Requests of OpenAI's Responses API, as chat messages that name where they stand. Pure.

More lenient than the gateway's own reading: an item that it would refuse is text of its JSON here.
"""

from typing import Any

import msgspec

from gateway.errors import BadRequest

Row = dict[str, Any]
_EMBEDDING = ("encoding_format", "dimensions", "input_type")


def is_response(body: Row) -> bool:
    """Say whether a body is a Responses request, and no embedding's."""
    if any(name in body for name in _EMBEDDING):
        return False
    return isinstance(body.get("input"), str | list) or isinstance(body.get("instructions"), str)


def read_response(body: Row, where: str) -> tuple[list[Row], list[str], list[Row]]:
    """Return messages, the fields they stand in, and the tools in the chat API's form.

    Raises:
        BadRequest: there is no prompt, or it is malformed; names the field.
    """
    messages: list[Row] = []
    fields: list[str] = []
    if instructions := body.get("instructions"):
        messages.append({"role": "system", "content": instructions})
        fields.append(f"{where}instructions")
    given = body.get("input")
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
        fields.append(f"{where}input")
    for at, item in enumerate(given if isinstance(given, list) else ()):
        message, name = _item(item, f"{where}input[{at}]")
        messages.append(message)
        fields.append(f"{where}input[{at}]{name}")
    if not messages:
        raise BadRequest(f"{where}input must hold at least one item", param=f"{where}input")
    return messages, fields, [_tool(tool) for tool in body.get("tools") or []]


def _item(item: Any, where: str) -> tuple[Row, str]:
    """Return an item as a message, and the name of its field that holds the text."""
    match item:
        case {"role": str(role), "content": content}:
            return {"role": role, "content": _plain(content)}, ".content"
        case {"type": "function_call", "name": str(name), "arguments": arguments}:
            function = {"name": name, "arguments": arguments}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}, ".arguments"
        case {"type": "function_call_output", "output": output}:
            call_id = item.get("call_id")
            return {"role": "tool", "tool_call_id": call_id, "content": _plain(output)}, ".output"
        case {"type": str(kind)} if kind != "message":
            return {"role": "assistant", "content": msgspec.json.encode(item).decode()}, ""
    raise BadRequest(f"{where} must be an item with a role or a type", param=where)


def _plain(content: Any) -> Any:
    """Return content of one part as its text, as the gateway does."""
    match content:
        case [{"text": str(text)}]:
            return text
    return content


def _tool(tool: Row) -> Row:
    """Return a tool in the chat API's form; the provider's own stay as they are."""
    if tool.get("type") != "function" or "function" in tool:
        return tool
    names = ("name", "description", "parameters")
    return {"type": "function", "function": {name: tool[name] for name in names if name in tool}}
