"""Functions, the older tools, as the local model serves them."""

from typing import Any

import pytest

from gateway.answer import Assembler
from gateway.backends.base import Delta, Final, Finish, Usage, Work
from gateway.backends.legacy_functions import (
    as_function_call,
    in_older_words,
    speaks_of_functions,
    with_tools,
)
from gateway.errors import BadRequest

FUNCTION = {"name": "f", "parameters": {"type": "object"}}


def tools_of(**fields: Any) -> dict[str, Any]:
    return with_tools(Work("r", "m", {"functions": [FUNCTION], **fields}, b"")).body


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        ("auto", "auto"),
        ("none", "none"),
        ({"name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_functions_become_tools_when_they_are_offered(choice: Any, expected: Any) -> None:
    """Each is one tool; one of them may be called, once."""
    assert tools_of(function_call=choice) == {
        "tools": [{"type": "function", "function": FUNCTION}],
        "parallel_tool_calls": False,
        "tool_choice": expected,
    }


def test_request_is_left_alone_when_it_offers_tools_or_nothing() -> None:
    """Only what has no newer form is translated."""
    assert not speaks_of_functions({"functions": []})
    assert not speaks_of_functions({"functions": [FUNCTION], "tools": [{"type": "function"}]})


def test_call_is_told_in_the_older_form() -> None:
    """One function_call, its arguments joined, no text, and the older finish_reason."""
    assembler = Assembler()
    for event in (
        Delta(
            tool_calls=[
                {"index": 0, "id": "k", "function": {"name": "f", "arguments": ""}},
                {"index": 0, "function": {"arguments": '{"a":'}},
            ]
        ),
        Delta(tool_calls=[{"index": 0, "function": {"arguments": " 1}"}}]),
        Finish(0, "tool_calls"),
        Final(Usage()),
    ):
        assembler.add(as_function_call(event))
    assert assembler.answer is not None
    (choice,) = assembler.answer.choices
    assert choice.extra == {"function_call": {"name": "f", "arguments": '{"a": 1}'}}
    assert (choice.text, choice.tool_calls, choice.finish_reason) == (None, [], "function_call")
    assert assembler.answer.is_storable


@pytest.mark.parametrize(
    ("known", "older"),
    [
        ("tools[3].function.name", "functions[3].name"),
        ("tools", "functions"),
        ("tool_choice.function.name", "function_call.name"),
        ("temperature", "temperature"),
    ],
)
def test_error_names_the_field_as_the_request_spells_it(known: str, older: str) -> None:
    """Nobody who sent functions is told of tools."""
    error = in_older_words(BadRequest(f"{known} is wrong", param=known))
    assert (error.param, error.message) == (older, f"{older} is wrong")


@pytest.mark.parametrize("fields", [{"functions": {}}, {"functions": "f"}, {"function_call": "x"}])
def test_request_is_refused_when_the_form_is_none_of_the_apis(fields: dict[str, Any]) -> None:
    """P07: the field is named."""
    with pytest.raises(BadRequest) as caught:
        tools_of(**fields)
    assert caught.value.param == next(iter(fields))
