"""JSON, tools and tool results written one way, so that equal ones make equal prompts. Pure.

Only what has no meaning is changed: the order of keys and of sets, spacing, and how a whole number
is spelt. The order of ``properties`` tells a model in which order to write arguments, so it is kept
unless asked otherwise; data (``enum``, ``const``, ``default``, ``examples``) is never touched.
"""

import json
from collections.abc import Iterable
from typing import Any, Literal, get_args

Properties = Literal["kept", "sorted"]

_MAX_EXACT = 2.0**53  # whole floats up to here are the same number when written as integers
_FIRST = "type name title description function parameters input_schema properties required items"
_RANKS = {name: place for place, name in enumerate(_FIRST.split())}
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"enum", "const", "default", "examples", "example"})
_MARK = "cache_control"


def canonical_json(value: Any) -> str:
    """Write JSON with sorted keys, no spaces, and text as it is.

    Raises:
        ValueError: a number that JSON has no spelling for, or a value nested without an end.
        TypeError: a value that is not JSON.
    """
    try:
        return json.dumps(
            _plain(value),
            ensure_ascii=False,
            allow_nan=False,
            sort_keys=True,
            separators=(",", ":"),
        )
    except RecursionError as error:
        raise ValueError("nested too deeply, or holds itself") from error


def canonical_result(result: Any) -> str:
    """Write what a tool returned: text that spells a JSON object or list in canonical form too.

    Text whose objects have a key twice stays as it is.
    """
    if not isinstance(result, str):
        return canonical_json(result)
    try:
        value = json.loads(result, object_pairs_hook=members_of)
        return canonical_json(value) if isinstance(value, dict | list) else result
    except (ValueError, RecursionError):
        return result


def canonical_tools(
    tools: Iterable[dict[str, Any]], properties: Properties = "kept"
) -> list[dict[str, Any]]:
    """Order tools by kind and name, and the keys in each; OpenAI's shape or Anthropic's.

    Tools that mark how much of the list to cache (``cache_control``) stay where they are.

    Raises:
        TypeError: a tool is no object; names its place.
        ValueError: ``properties`` is neither kept nor sorted.
    """
    if properties not in get_args(Properties):
        raise ValueError(f"properties must be kept or sorted, not {properties!r}")
    ordered = [_tool(tool, properties, f"tools[{at}]") for at, tool in enumerate(tools)]
    if any(_MARK in tool for tool in ordered):
        return ordered
    return sorted(ordered, key=_tool_rank)


def canonical_tool(tool: dict[str, Any], properties: Properties = "kept") -> dict[str, Any]:
    """Order the keys of one tool and of its schema.

    Raises:
        TypeError: the tool is no object.
    """
    return _tool(tool, properties, "a tool")


def _tool(tool: object, properties: Properties, name: str) -> dict[str, Any]:
    if not isinstance(tool, dict):
        raise TypeError(f"{name} must be an object, not {type(tool).__name__}")
    ordered: dict[str, Any] = _ordered(tool, properties)
    return ordered


def _tool_rank(tool: dict[str, Any]) -> tuple[str, str, str]:
    named = tool.get("function")
    name = (named if isinstance(named, dict) else tool).get("name")
    return str(tool.get("type", "")), str(name), json.dumps(tool, sort_keys=True, default=str)


def _ordered(value: Any, properties: Properties) -> Any:
    if isinstance(value, list):
        return [_ordered(item, properties) for item in value]
    if not isinstance(value, dict):
        return value
    keys = sorted(value, key=lambda key: (_RANKS.get(key, len(_RANKS)), key))
    return {key: _field(key, value[key], properties) for key in keys}


def _field(key: str, value: Any, properties: Properties) -> Any:
    if key in _DATA:
        return value
    if key == "required" and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return sorted(value)
    if key in _NAMED and isinstance(value, dict):
        names = sorted(value) if properties == "sorted" else list(value)
        return {name: _ordered(value[name], properties) for name in names}
    return _ordered(value, properties)


def _plain(value: Any) -> Any:
    """Spell whole floats as integers, as RFC 8785 does."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT:
        return int(value)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"a key must be text, not {type(key).__name__}")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def members_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of a JSON text's members, for ``json``'s ``object_pairs_hook``.

    Raises:
        ValueError: a key stands twice.
    """
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice")
    return members
