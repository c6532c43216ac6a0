"""Texts that hold the same JSON values, or the same lines, in another order. Pure."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Order = Literal["json_key_order", "json_format", "tool_order", "list_order", "line_order"]

_MAX_STARTS = 2000
_MIN_LINES = 2
_MIN_SAME = 3  # lines that tell an order beside one that changed
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Value:
    value: Any
    text: str


def order_difference(here: str, cached: str, start: int) -> Order | None:
    """Say in which order two texts differ that part at ``start``; None when they differ in more."""
    return _json_difference(here, cached) or _line_difference(here, cached, start)


def _json_difference(here: str, cached: str) -> Order | None:
    ours, theirs = _values(here), _values(cached)
    for at, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a.text != b.text:
            return _difference(a, b) or _sequence_difference(ours[at:], theirs[at:])
    return None


def _difference(a: _Value, b: _Value) -> Order | None:
    """Compare two values that are written differently."""
    if a.value == b.value:
        return "json_format" if _dump(a.value) == _dump(b.value) else "json_key_order"
    if _unordered(a.value) != _unordered(b.value):
        return _changed_order(a.value, b.value)
    return "tool_order" if _holds_tools(a.value) else "list_order"


def _changed_order(a: Any, b: Any) -> Order | None:
    """Compare values that hold the same keys, or tools of the same names, but not the same data."""
    if isinstance(a, list) and isinstance(b, list) and _holds_tools(a) and _holds_tools(b):
        ours, theirs = ([_tool_name(tool) for tool in tools] for tools in (a, b))
        return "tool_order" if ours != theirs and sorted(ours) == sorted(theirs) else None
    keys = [list(_keys(value)) for value in (a, b)]
    moved = keys[0] != keys[1] and sorted(keys[0]) == sorted(keys[1])
    return "json_key_order" if moved else None


def _keys(value: Any, path: str = "") -> Iterator[str]:
    """Give the path of every key, in the order of the text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}/{key}"
            yield from _keys(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _keys(inner, f"{path}/{at}")


def _tool_name(tool: dict[str, Any]) -> str:
    named = tool.get("function", tool)
    return str(named["name"])


def _sequence_difference(ours: list[_Value], theirs: list[_Value]) -> Order | None:
    """Compare values that follow each other, such as one tool a line."""
    count = min(len(ours), len(theirs))
    a, b = ([_unordered(v.value) for v in values[:count]] for values in (ours, theirs))
    if count < _MIN_LINES or Counter(a) != Counter(b):
        return None
    return "tool_order" if all(_is_tool(v.value) for v in ours[:count]) else "list_order"


def _line_difference(here: str, cached: str, start: int) -> Order | None:
    line_start = here.rfind("\n", 0, start) + 1
    a, b = (Counter(text[line_start:].split("\n")) for text in (here, cached))
    moved = [line for line in a if line.strip()]
    if len(moved) < _MIN_LINES:
        return None
    return "line_order" if a == b or _most_moved(here[line_start:], cached[line_start:]) else None


def _most_moved(here: str, cached: str) -> bool:
    """Say whether most lines are the same but follow each other otherwise, beside a changed one."""
    ours, theirs = ([x for x in text.split("\n") if x.strip()] for text in (here, cached))
    both = set(ours) & set(theirs)
    if len(ours) != len(theirs) or len(both) < _MIN_SAME or len(both) < len(ours) - 1:
        return False
    return [line for line in ours if line in both] != [line for line in theirs if line in both]


def _values(text: str) -> list[_Value]:
    """Return the JSON objects and lists that stand in a text."""
    values: list[_Value] = []
    at = 0
    for _ in range(_MAX_STARTS):
        at = min((i for i in (text.find("{", at), text.find("[", at)) if i >= 0), default=-1)
        if at < 0:
            break
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        values.append(_Value(value, text[at:end]))
        at = end
    return [value for value in values if value.value]


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _unordered(value: Any) -> str:
    """Write a value so that neither the order of keys nor that of items matters."""
    if isinstance(value, dict):
        items = sorted(f"{json.dumps(key)}:{_unordered(inner)}" for key, inner in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(_unordered, value))) + "]"
    return json.dumps(value)


def _holds_tools(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_tool(value) or any(map(_holds_tools, value.values()))
    return isinstance(value, list) and bool(value) and all(map(_is_tool, value))


def _is_tool(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    named = value.get("function", value)
    described = {"parameters", "description", "input_schema", "arguments"}
    return isinstance(named, dict) and "name" in named and bool(described & set(named))
