"""Chat messages as a template can take them: every content a string, nothing lost. Pure.

A template that knows no tools gets tool calls and results as text, in the form that Hermes and
Qwen models were trained on. Source: the chat template of Qwen2.5-Instruct.
"""

import json
from typing import Any

from gateway.errors import BadRequest

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def read_history(messages: Any, *, knows_tools: bool) -> list[dict[str, Any]]:
    """Return the messages with string contents and the roles that templates know.

    Raises:
        BadRequest: a message is malformed or holds what is not text; names the field.
    """
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list with at least one message", param="messages")
    history = [_read_message(message, f"messages[{at}]") for at, message in enumerate(messages)]
    return history if knows_tools else _tools_as_text(history)


def _read_message(message: Any, field: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise BadRequest(f"{field} must be an object", param=field)
    role = message.get("role")
    if role not in ROLES:
        raise BadRequest(f"{field}.role must be one of {', '.join(ROLES)}", param=f"{field}.role")
    read: dict[str, Any] = {
        "role": {"developer": "system", "function": "tool"}.get(role, role),
        "content": _read_content(message.get("content"), f"{field}.content"),
    }
    for key in ("name", "tool_call_id", "reasoning_content"):
        if isinstance(message.get(key), str):
            read[key] = message[key]
    if calls := _read_calls(message, field):
        read["tool_calls"] = calls
    return read


def _read_content(content: Any, field: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_read_part(part, field) for part in content)
    raise BadRequest(f"{field} must be a string or a list of text parts", param=field)


def _read_part(part: Any, field: str) -> str:
    match part:
        case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
            return text
        case {"type": "text" | "refusal"}:
            raise BadRequest(f"{field} has a text part without text", param=field)
        case {"type": str(kind)}:
            raise BadRequest(
                f"{field} has a part of type {kind[:40]!r}: this model reads text only", param=field
            )
    raise BadRequest(f"{field} has a part without a type", param=field)


def _read_calls(message: dict[str, Any], field: str) -> list[dict[str, Any]]:
    calls = message.get("tool_calls") or []
    if legacy := message.get("function_call"):
        calls = [{"type": "function", "function": legacy}]
    if not isinstance(calls, list):
        raise BadRequest(f"{field}.tool_calls must be a list", param=f"{field}.tool_calls")
    return [_read_call(call, f"{field}.tool_calls[{at}]") for at, call in enumerate(calls)]


def _read_call(call: Any, field: str) -> dict[str, Any]:
    match call:
        case {"function": {"name": str(name), **function}}:
            arguments = _read_arguments(function.get("arguments"))
            return {
                **{key: call[key] for key in ("id", "type") if isinstance(call.get(key), str)},
                "function": {"name": name, "arguments": arguments},
            }
    raise BadRequest(f"{field} must name a function", param=field)


def _read_arguments(arguments: Any) -> Any:
    """Return the object that the API's JSON text spells; text that spells none stays as it is."""
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _tools_as_text(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write calls into the assistant's content, and results as turns of the user."""
    plain: list[dict[str, Any]] = []
    in_results = False
    for message in history:
        if message["role"] != "tool":
            in_results = False
            plain.append({"role": message["role"], "content": _with_calls(message)})
            continue
        result = f"<tool_response>\n{message['content']}\n</tool_response>"
        if in_results:
            plain[-1]["content"] += f"\n{result}"
        else:
            plain.append({"role": "user", "content": result})
        in_results = True
    return plain


def _with_calls(message: dict[str, Any]) -> str:
    lines = [message["content"]] if message["content"] else []
    for call in message.get("tool_calls", []):
        function = json.dumps(call["function"], ensure_ascii=False)
        lines.append(f"<tool_call>\n{function}\n</tool_call>")
    return "\n".join(lines)
