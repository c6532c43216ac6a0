"""Answers that call tools: what the grammar lets through, and what it does not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.plan import read_plan
from gateway.backends.tokenizer import Tokenizer
from gateway.backends.tool_format import FORMATS, ToolFormat
from gateway.errors import BadRequest
from prefix_layer.grammar import compile_grammar, load_vocabulary
from tests.gateway.test_tool_parser import written

EOS = 2
Accepts = Callable[[ToolFormat, dict[str, Any], str], bool]


def tool(name: str, **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


def takes(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)[:1]}


TOOLS = [
    tool("get", parameters=takes(city={"type": "string"}, days={"type": "integer"})),
    tool("get_all", parameters={}),
    tool(
        "node",
        parameters={
            "$defs": {"n": {"enum": ["x", "y"]}},
            **takes(kind={"$ref": "#/$defs/n"}, deep={"type": ["boolean", "null"]}),
        },
    ),
]
GOOD = [
    ("get", {"city": "Köln, 🌙", "days": 3}),
    ("get", {"city": ""}),
    ("get_all", {}),
    ("node", {"kind": "y", "deep": None}),
]
BAD = [
    ("get", {"days": 3}),
    ("get", {"city": 3}),
    ("get", {"city": "a", "more": 1}),
    ("get_all", {"city": "a"}),
    ("gets", {"city": "a"}),
    ("node", {"kind": "z"}),
]


@pytest.fixture(scope="module")
def accepts(bundled_chat_model: Path) -> Accepts:
    """Say whether a text is an answer to a request, by the bundled model's tokens."""
    tokenizer = Tokenizer(bundled_chat_model)
    vocabulary = load_vocabulary(bundled_chat_model, 49_152)

    def accepts(form: ToolFormat, body: dict[str, Any], text: str) -> bool:
        plan = read_plan({"tools": TOOLS, **body}, form, {})
        assert plan.grammar is not None
        matcher = compile_grammar(vocabulary, plan.grammar).start([EOS])
        for token_id in tokenizer.encode(text):
            if not matcher.allowed()[token_id]:
                return False
            matcher.accept(token_id)
        return bool(matcher.is_finished or matcher.allowed()[EOS])

    return accepts


every_format = pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))


@every_format
def test_calls_pass_when_they_fit_their_tools(form: ToolFormat, accepts: Accepts) -> None:
    """Each tool's own arguments, alone and in parallel, asked for or not."""
    for body in ({}, {"tool_choice": "required"}):
        for call in GOOD:
            assert accepts(form, body, written(form, [call])), call
        assert accepts(form, body, written(form, GOOD))


@every_format
def test_calls_are_stopped_when_they_fit_no_tool(form: ToolFormat, accepts: Accepts) -> None:
    """Neither an unknown name nor a wrong argument ever comes out."""
    for body in ({}, {"tool_choice": "required"}):
        for call in BAD:
            assert not accepts(form, body, written(form, [call])), call
            assert not accepts(form, body, written(form, [GOOD[0], call])), call


@every_format
def test_text_passes_only_when_no_call_is_required(form: ToolFormat, accepts: Accepts) -> None:
    """Auto leaves the choice to the model; required and a named function don't."""
    for text in ("Hello, it is 21° (sunny) in Köln!\n\n1 < 2", ""):
        assert accepts(form, {}, text)
        assert not accepts(form, {"tool_choice": "required"}, text)


@every_format
def test_second_call_is_stopped_when_calls_are_not_parallel(
    form: ToolFormat, accepts: Accepts
) -> None:
    """parallel_tool_calls false means one."""
    one = {"parallel_tool_calls": False}
    assert accepts(form, one, written(form, GOOD[:1]))
    assert not accepts(form, one, written(form, GOOD[:2]))


@every_format
def test_other_tools_are_stopped_when_one_is_named(form: ToolFormat, accepts: Accepts) -> None:
    """The tools that were not chosen stay in the prompt only."""
    body = {"tool_choice": tool("get_all")}
    assert accepts(form, body, written(form, [("get_all", {})]))
    assert not accepts(form, body, written(form, GOOD[:1]))


@every_format
def test_answer_is_a_call_or_the_format_when_both_are_asked_for(
    form: ToolFormat, accepts: Accepts
) -> None:
    """response_format governs the text beside tools."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    body = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    assert accepts(form, body, '{"ok": true}')
    assert accepts(form, body, written(form, GOOD[:2]))
    assert not accepts(form, body, "Hello")


def test_text_may_come_before_a_call_when_the_family_does_so(accepts: Accepts) -> None:
    """After a call there are only more calls."""
    form = FORMATS["hermes"]
    call = written(form, GOOD[:1])
    assert accepts(form, {}, f"Let me see. <tool \n{call}")
    assert not accepts(form, {}, f"{call} Done.")
    assert not accepts(form, {}, f"<tool_call>\n{json.dumps(GOOD[0])}")


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("strict", [True, False])
def test_unsupported_schema_is_refused_when_it_must_be_followed(
    choice: str, strict: bool, accepts: Accepts
) -> None:
    """Auto without strict takes what can be enforced and leaves the rest to the model."""
    parameters = {**takes(a={"type": "array", "items": [{"type": "string"}]})}
    body = {"tools": [tool("f", parameters=parameters, strict=strict)], "tool_choice": choice}
    form = FORMATS["hermes"]
    if strict or choice == "required":
        with pytest.raises(BadRequest) as caught:
            read_plan(body, form, {})
        assert caught.value.param == "tools[0].function.parameters"
        assert "items" in caught.value.message
    else:
        assert accepts(form, body, written(form, [("f", {"a": [1]})]))


def test_special_tokens_are_named_when_they_mark_calls(bundled_chat_model: Path) -> None:
    """Markers that are special tokens of the vocabulary can't be spelled by others."""
    special = {"[TOOL_CALLS]": 5}
    plan = read_plan({"tools": TOOLS}, FORMATS["mistral"], special)
    assert plan.grammar is not None
    assert "<[5]>" in plan.grammar.text
    assert "[TOOL_CALLS]" not in plan.grammar.text
    vocabulary = load_vocabulary(bundled_chat_model, 49_152)
    matcher = compile_grammar(vocabulary, plan.grammar).start([EOS])
    assert matcher.allowed()[5]
    assert not matcher.allowed()[6]


@pytest.mark.parametrize("parameters", [[], 7, {"type": "string"}, {"type": ["object", "null"]}])
def test_parameters_are_refused_when_they_are_no_object(parameters: Any) -> None:
    """Arguments are always an object."""
    with pytest.raises(BadRequest) as caught:
        read_plan({"tools": [tool("f", parameters=parameters)]}, FORMATS["hermes"], {})
    assert "tools[0].function.parameters" in (caught.value.param or "")
