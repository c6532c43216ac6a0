"""Canonical JSON and tools: one way to write what is the same, and the same set as before."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.layout import canonical_json, canonical_result, canonical_tool, canonical_tools

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(
    ["type", "title", "description", "properties", "required", "enum", "items", "$defs", "x", "Ü"]
)
SCHEMA = st.dictionaries(KEYWORDS, JSON, max_size=6)
TOOL = st.builds(
    lambda name, schema, text: {
        "type": "function",
        "function": {"name": name, "description": text, "parameters": schema},
    },
    st.text("abcd_", min_size=1, max_size=4),
    SCHEMA,
    st.text(max_size=8),
)


def plain(value: Any) -> Any:
    """Write a value so that key order does not matter, and that of ``required`` neither."""
    if isinstance(value, dict):
        return {
            key: sorted(item)
            if key == "required"
            and isinstance(item, list)
            and all(isinstance(one, str) for one in item)
            else plain(item)
            for key, item in value.items()
        }
    return [plain(item) for item in value] if isinstance(value, list) else value


def shuffled(value: Any, chance: random.Random) -> Any:
    """Shuffle the keys of every object."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key], chance) for key in keys}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


@given(st.lists(TOOL, max_size=6), st.sampled_from(["kept", "sorted"]))
def test_tools_are_the_same_set_when_ordered(tools: list[dict[str, Any]], properties: Any) -> None:
    """Nothing is lost, added or changed; ordering again changes nothing."""
    before = json.dumps(tools)
    ordered = canonical_tools(tools, properties)
    assert json.dumps(tools) == before, "the caller's tools were changed"
    rank = lambda tool: json.dumps(plain(tool), sort_keys=True)  # noqa: E731
    assert sorted(map(rank, ordered)) == sorted(map(rank, tools))
    assert json.dumps(canonical_tools(ordered, properties)) == json.dumps(ordered)


@given(st.lists(TOOL, max_size=5), st.randoms(use_true_random=False))
def test_tools_are_written_one_way_when_their_order_differs(
    tools: list[dict[str, Any]], chance: random.Random
) -> None:
    """Any order of the same tools and keys becomes one, where properties may be sorted."""
    other = [shuffled(plain_data(tool), chance) for tool in chance.sample(tools, len(tools))]
    first = canonical_tools([plain_data(tool) for tool in tools], "sorted")
    assert json.dumps(canonical_tools(other, "sorted")) == json.dumps(first)


def plain_data(value: Any) -> Any:
    """Leave out what is data, whose own order stays."""
    if isinstance(value, dict):
        return {key: plain_data(item) for key, item in value.items() if key != "enum"}
    return [plain_data(item) for item in value] if isinstance(value, list) else value


def test_arguments_keep_their_order_when_nobody_asks_otherwise() -> None:
    """A model writes arguments in the order of the schema, so only keywords move."""
    schema = {"properties": {"why": {"type": "string"}, "act": {"x": 1}}, "type": "object"}
    tool = {"function": {"parameters": schema, "name": "go"}, "type": "function"}
    kept = canonical_tools([tool])[0]["function"]
    assert list(kept) == ["name", "parameters"]
    assert list(kept["parameters"]) == ["type", "properties"]
    assert list(kept["parameters"]["properties"]) == ["why", "act"]
    (sorted_,) = canonical_tools([tool], "sorted")
    assert list(sorted_["function"]["parameters"]["properties"]) == ["act", "why"]


def test_data_in_a_schema_is_left_alone_when_tools_are_ordered() -> None:
    """Allowed values, defaults and examples are what the author wrote."""
    schema = {"enum": [{"b": 1, "a": 2}, "z", "c"], "default": {"z": 1, "a": 2}}
    (tool,) = canonical_tools([{"name": "t", "input_schema": schema}], "sorted")
    assert json.dumps(tool["input_schema"]["enum"]) == json.dumps(schema["enum"])
    assert json.dumps(tool["input_schema"]["default"]) == json.dumps(schema["default"])


def test_tools_stay_in_place_when_one_marks_the_cached_part() -> None:
    """A cache_control mark means all tools up to it, so moving any would change its meaning."""
    tools = [{"name": "b", "cache_control": {"type": "ephemeral"}}, {"name": "a"}]
    assert [tool["name"] for tool in canonical_tools(tools)] == ["b", "a"]


@given(JSON)
def test_json_means_the_same_when_written_canonically(value: Any) -> None:
    """It reads back as the same value, whatever the order of keys was."""
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(shuffled(value, random.Random(0))) == text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ('{"b": 1.0,\n "a": "é"}', '{"a":"é","b":1}'),
        ({"b": 1, "a": [2.5, None]}, '{"a":[2.5,null],"b":1}'),
        ("[ 1 , 2 ]", "[1,2]"),
        ("42", "42"),
        ("007", "007"),
        ("plain text", "plain text"),
        ('{"broken": ', '{"broken": '),
        ('"quoted"', '"quoted"'),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
    ],
)
def test_tool_result_is_written_one_way_when_it_is_json(result: Any, text: str) -> None:
    """Objects and lists are rewritten; every other text is the tool's own."""
    assert canonical_result(result) == text


def test_number_is_refused_when_json_cannot_spell_it() -> None:
    """Not-a-number would make a text that no parser takes."""
    with pytest.raises(ValueError, match=r"JSON"):
        canonical_json({"x": float("nan")})


def test_value_is_refused_when_it_is_no_json() -> None:
    """Keys that are no text, and a value without an end, are told as what they are."""
    with pytest.raises(TypeError, match="a key must be text, not int"):
        canonical_json({1: "a", "b": "c"})
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="holds itself"):
        canonical_json(endless)


def test_tool_is_named_when_it_is_no_object() -> None:
    """What cannot be a tool is told by its place, and a wish that there is not by its name."""
    with pytest.raises(TypeError, match=r"tools\[1\] must be an object, not str"):
        canonical_tools([{"name": "a"}, "x"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="properties must be kept or sorted"):
        canonical_tools([], "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a tool must be an object, not str"):
        canonical_tool("x")  # type: ignore[arg-type]
