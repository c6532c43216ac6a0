"""Which tools an answer may call, read from a chat request. Pure.

Source: OpenAI API reference, "Create chat completion": tools, tool_choice, parallel_tool_calls.
"""

import re
from dataclasses import dataclass
from typing import Any

from gateway.errors import BadRequest

MAX_TOOLS = 128
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Tool:
    """One function; ``field`` is where its parameters stand in the request."""

    name: str
    parameters: Any
    strict: bool
    field: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools that may be called. ``shown`` are the definitions of all tools, for the prompt.

    ``required`` means that the answer is calls and nothing else; ``parallel`` that they may be
    more than one.
    """

    tools: tuple[Tool, ...]
    shown: list[dict[str, Any]]
    required: bool
    parallel: bool


def read_tool_use(body: dict[str, Any]) -> ToolUse | None:
    """Return what may be called; None where no tool may.

    Raises:
        BadRequest: a tool or the choice among them is malformed; names the field.
    """
    definitions = body.get("tools") or []
    if not isinstance(definitions, list) or len(definitions) > MAX_TOOLS:
        raise BadRequest(f"tools must be a list of at most {MAX_TOOLS} tools", param="tools")
    tools = [_read_tool(definition, f"tools[{at}]") for at, definition in enumerate(definitions)]
    names = [tool.name for tool in tools]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"tools has two functions named {doubled!r}", param="tools")
    choice = body.get("tool_choice")
    callable_names, required = _read_choice(choice, names)
    parallel = body.get("parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        raise BadRequest("parallel_tool_calls must be true or false", param="parallel_tool_calls")
    if not callable_names:
        return None
    return ToolUse(
        tuple(tool for tool in tools if tool.name in callable_names),
        [_shown(definition) for definition in definitions],
        required,
        parallel is not False and not _is_named(choice),
    )


def _read_tool(definition: Any, field: str) -> Tool:
    match definition:
        case {"type": "function", "function": {"name": str(name), **function}}:
            if not _NAME.fullmatch(name):
                raise BadRequest(
                    f"{field}.function.name must be 1 to 64 letters, digits, '_', '-' or '.'",
                    param=f"{field}.function.name",
                )
            parameters = function.get("parameters")
            parameters = _NO_PARAMETERS if parameters in (None, {}) else parameters
            strict = function.get("strict") is True
            return Tool(name, parameters, strict, f"{field}.function.parameters")
        case {"type": "function"}:
            raise BadRequest(f"{field}.function must have a name", param=f"{field}.function")
    raise BadRequest(
        f"{field}.type must be function: the local model calls nothing else",
        param=f"{field}.type",
        code="unsupported",
    )


def _read_choice(choice: Any, names: list[str]) -> tuple[list[str], bool]:
    """Return the names that may be called, and whether one of them must be."""
    match choice:
        case "none":
            return [], False
        case None | "auto":
            return names, False
        case "required" | "any" if names:
            return names, True
        case {"type": "function", "function": {"name": str(name)}}:
            return [_known(name, names, "tool_choice.function.name")], True
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(allowed)}}:
            wanted = [_allowed(one, names) for one in allowed]
            return wanted, bool(wanted) and mode == "required"
    raise BadRequest(
        "tool_choice must be none, auto, required or the function of a given tool",
        param="tool_choice",
    )


def _is_named(choice: Any) -> bool:
    """Say whether the choice is one function: then it is called once."""
    return isinstance(choice, dict) and choice.get("type") == "function"


def _allowed(tool: Any, names: list[str]) -> str:
    field = "tool_choice.allowed_tools.tools"
    match tool:
        case {"type": "function", "function": {"name": str(name)}}:
            return _known(name, names, field)
        case {"type": "function", "name": str(name)}:
            return _known(name, names, field)
    raise BadRequest(f"{field} must name functions", param=field)


def _known(name: str, names: list[str], field: str) -> str:
    if name not in names:
        raise BadRequest(f"{field} is {name[:64]!r}, which is none of the tools", param=field)
    return name


def _shown(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition without what only tells how to call."""
    function = {key: value for key, value in definition["function"].items() if key != "strict"}
    return {"type": "function", "function": function}
