"""What may be called is read from tools and tool_choice."""

from typing import Any

import pytest

from gateway.backends.tool_use import ToolUse, read_tool_use
from gateway.errors import BadRequest


def tool(name: str, **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def use(choice: Any = None, **body: Any) -> ToolUse | None:
    return read_tool_use({"tools": [tool("a"), tool("b")], "tool_choice": choice, **body})


def names(found: ToolUse | None) -> list[str]:
    assert found is not None
    return [one.name for one in found.tools]


def test_any_tool_may_be_called_when_the_choice_is_auto() -> None:
    """Silence, null and auto are the same."""
    assert names(use()) == names(use("auto")) == ["a", "b"]
    assert not (found := use()).required  # type: ignore[union-attr]
    assert found.parallel


@pytest.mark.parametrize("body", [{}, {"tools": []}, {"tools": None}, {"tool_choice": "none"}])
def test_nothing_may_be_called_when_there_are_no_tools(body: dict[str, Any]) -> None:
    """The answer is text then."""
    assert read_tool_use(body) is None
    assert use("none") is None


def test_one_call_is_made_when_a_function_is_named() -> None:
    """Only that one, and certainly; the prompt still shows the others."""
    found = use(named("b"), parallel_tool_calls=False)
    assert names(found) == ["b"]
    assert found is not None
    assert found.required
    assert not found.parallel
    assert len(found.shown) == 2


def test_some_call_is_made_when_the_choice_is_required() -> None:
    """Any of the tools will do."""
    assert names(found := use("required")) == ["a", "b"]
    assert found is not None
    assert found.required


def test_only_allowed_tools_are_called_when_a_subset_is_given() -> None:
    """OpenAI's allowed_tools narrows the choice without another prompt."""
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named("a")]}}
    found = use(choice)
    assert names(found) == ["a"]
    assert found is not None
    assert found.required
    assert len(found.shown) == 2


def test_arguments_are_empty_when_a_tool_has_no_parameters() -> None:
    """Leaving parameters out defines a function without any."""
    found = use()
    assert found is not None
    assert found.tools[0].parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [tool("a"), {"type": "custom", "custom": {"name": "x"}}]}, "tools[1].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [tool("a b")]}, "tools[0].function.name"),
        ({"tools": [tool("x" * 65)]}, "tools[0].function.name"),
        ({"tools": [tool("a"), tool("a")]}, "tools"),
        ({"tools": {"a": 1}}, "tools"),
        ({"tools": [tool("a")] * 129}, "tools"),
        ({"tools": [tool("a")], "tool_choice": "always"}, "tool_choice"),
        ({"tools": [tool("a")], "tool_choice": named("c")}, "tool_choice.function.name"),
        ({"tools": [tool("a")], "parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"tool_choice": "required"}, "tool_choice"),
    ],
)
def test_field_is_named_when_it_is_wrong(body: dict[str, Any], param: str) -> None:
    """A wrong tool or choice is the caller's to mend."""
    with pytest.raises(BadRequest) as caught:
        read_tool_use(body)
    assert caught.value.param == param


def test_one_call_is_made_when_the_function_is_named() -> None:
    """A function chosen by name is called once; required may be several calls."""
    named_use, required = use(named("a")), use("required")
    assert named_use is not None
    assert required is not None
    assert (named_use.parallel, required.parallel) == (False, True)
