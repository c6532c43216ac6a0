"""OpenAI's Responses request as the chat body that caches and backends know.

Two requests of one meaning, here and in the chat API, become equal bodies; what only concerns how
a response is kept or sent is dropped; unknown fields travel on.
"""

from collections.abc import Sequence
from typing import Any

from gateway.wire.responses.items import History, Item
from gateway.wire.responses.request import FormatIn, ResponsesRequest, ToolIn

_TRANSLATED = frozenset(
    {
        "input", "instructions", "previous_response_id", "max_output_tokens", "tools",
        "tool_choice", "text", "reasoning", "top_logprobs", "strata",
    }
)  # fmt: skip
_DROPPED = frozenset(
    {
        "store", "n", "stream_options", "max_tool_calls", "include", "truncation", "metadata",
        "background", "background_options", "context_management", "access_programs", "image",
        "prompt_cache_options", "prompt_cache_retention",
    }
)  # fmt: skip

_INSTRUCTING = frozenset({"system", "developer"})


def turns_of(items: Sequence[Item]) -> list[int]:
    """Return where the user's turns after the first begin: an input may be cut there."""
    starts = [at for at, item in enumerate(items) if item.get("role") == "user"]
    return starts[1:]


def chat_body(
    request: ResponsesRequest,
    tree: dict[str, Any],
    before: Sequence[Item],
    items: Sequence[Item],
    num_dropped: int = 0,
) -> tuple[dict[str, Any], list[str]]:
    """Return the chat body, and where each of its messages came from.

    Args:
        request: the validated request.
        tree: its JSON.
        before: the items of the conversation it continues.
        items: its own input.
        num_dropped: the oldest items to leave out, instructions aside.

    Raises:
        BadRequest: an item is malformed; names it.
    """
    history = History(request.instructions)
    told = [(item, "previous_response_id") for item in before]
    for at, item in enumerate(items):
        told.append((item, f"input[{at}]" if isinstance(request.input, list) else "input"))
    for at, (item, where) in enumerate(told):
        if at >= num_dropped or item.get("role") in _INSTRUCTING:
            history.add(item, where)
    body = {
        name: value
        for name, value in tree.items()
        if value is not None and name not in _TRANSLATED and name not in _DROPPED
    }
    return {**body, "messages": history.messages, **_options(request)}, history.origins


def _options(request: ResponsesRequest) -> dict[str, Any]:
    text, reasoning = request.text, request.reasoning
    options: dict[str, Any] = {
        "max_completion_tokens": request.max_output_tokens,
        "tools": [_tool(tool) for tool in request.tools or ()] or None,
        "tool_choice": _tool_choice(request.tool_choice),
        "response_format": _format(text.format if text else None),
        "verbosity": text.verbosity if text else None,
        "reasoning_effort": reasoning.effort if reasoning else None,
    }
    if request.wants_logprobs:
        options |= {"logprobs": True, "top_logprobs": request.top_logprobs or None}
    return {name: value for name, value in options.items() if value is not None}


def _tool(tool: ToolIn) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict or None,
    }
    return {
        "type": "function",
        "function": {name: value for name, value in function.items() if value is not None},
    }


def _tool_choice(choice: str | dict[str, Any] | None) -> Any:
    match choice:
        case {"type": "function", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}
        case {"type": "allowed_tools", "mode": mode, "tools": list(tools)}:
            named = [_tool_choice(tool) for tool in tools]
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": named}}
    return choice


def _format(shape: FormatIn | None) -> dict[str, Any] | None:
    if shape is None or shape.type == "text":
        return None
    if shape.type == "json_object":
        return {"type": "json_object"}
    schema = {
        "name": shape.name,
        "description": shape.description,
        "schema": shape.schema,
        "strict": shape.strict,
    }
    return {
        "type": "json_schema",
        "json_schema": {name: value for name, value in schema.items() if value is not None},
    }
