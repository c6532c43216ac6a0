"""Requests are found in every kind of log, and places are told in that log's own words."""

import gzip
import io
import json
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from gateway.lint.log_file import BadRow, plain_lines, read_rows
from tests.gateway.lint.conftest import Lint

RULES = "Be brief, be kind, cite your sources and never guess at numbers. Ask back when in doubt."
Row = dict[str, Any]


def system(at: int) -> str:
    return f"You help visitors.\nNow: 2026-11-29T10:00:0{at}Z\n{RULES}"


def openai(at: int) -> Row:
    said = [{"role": "developer", "content": system(at)}, {"role": "user", "content": "Hello"}]
    return {"model": "m", "messages": said}


def responses(at: int) -> Row:
    return {"model": "m", "instructions": system(at), "input": "Hello"}


def told(at: int) -> Row:
    """An agent's input: messages, reasoning, a call, its output, and a hosted tool's call."""
    said = [{"type": "input_text", "text": system(at)}]
    return {
        "model": "m",
        "input": [
            {"type": "message", "role": "developer", "content": said},
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:,x"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "open"},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
    }


def anthropic(at: int) -> Row:
    blocks = [{"type": "text", "text": system(at), "cache_control": {"type": "ephemeral"}}]
    said = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    return {"model": "m", "max_tokens": 9, "system": blocks, "messages": said}


def langchain(at: int) -> list[BaseMessage]:
    call = {"name": "look", "args": {"at": "door"}, "id": "c1"}
    return [
        SystemMessage(system(at)),
        HumanMessage("Hello"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("open", tool_call_id="c1"),
    ]


def run(at: int, messages: Any) -> Row:
    extra = {"invocation_params": {"model": "m"}}
    return {
        "id": "r",
        "name": "chat",
        "run_type": "llm",
        "inputs": {"messages": messages},
        "extra": extra,
    }


def chain(at: int) -> Row:
    inner = run(at, [[dumpd(message) for message in langchain(at)]])
    return {"id": "c", "name": "agent", "run_type": "chain", "inputs": {}, "child_runs": [inner]}


@pytest.mark.parametrize(
    ("make", "field", "message"),
    [
        (openai, "messages[0].content", 0),
        (anthropic, "system", None),
        (lambda at: {"request": openai(at), "response": {}}, "request.messages[0].content", 0),
        (lambda at: {"custom_id": "x", "body": openai(at)}, "body.messages[0].content", 0),
        (lambda at: {"model": "m", "prompt": system(at)}, "prompt", None),
        (chain, "child_runs[0].inputs.messages[0][0].kwargs.content", 0),
        (
            lambda at: run(at, messages_to_dict(langchain(at))),
            "inputs.messages[0].data.content",
            0,
        ),
        (responses, "instructions", None),
        (lambda at: {"request": responses(at)}, "request.instructions", None),
        (told, "input[0].content", 0),
        (lambda at: run(at, openai(at)["messages"]), "inputs.messages[0].content", 0),
        (
            lambda at: {**run(at, None), "inputs": {"prompts": [system(at)]}},
            "inputs.prompts[0]",
            None,
        ),
    ],
)
def test_place_is_told_in_the_words_of_the_log(
    lint: Lint, make: Any, field: str, message: int | None
) -> None:
    """Each kind of row is read, and the timestamp's place is a path in that row."""
    report = lint([make(at) for at in range(3)])
    assert not report.bad
    (finding,) = report.findings
    assert finding.cause == "timestamp"
    assert finding.position.field == field
    assert finding.position.message == message
    assert finding.position.char == system(0).index("2026")
    assert finding.position.token is not None


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "messages must be a list"),
        ({"messages": []}, "messages must be a list"),
        ({"input": []}, "input must hold at least one item"),
        ({"input": ["x"]}, "input[0] must be an item with a role or a type"),
        ({"input": "x", "encoding_format": "float"}, "messages must be a list"),
        ({"messages": ["hi"]}, "messages[0] must be an object"),
        ({"prompt": []}, "prompt must not be an empty list"),
        ({"request": {"prompt": ["a", {}]}}, "request.prompt[1] must be text or token ids"),
        ({"request": {"messages": [{"content": "x"}]}}, "request.messages[0] must be an object"),
        ({"messages": [{"role": "user", "content": 5}]}, "must be a string"),
        (
            {"messages": [{"role": "user", "content": "x"}], "tools": {"a": 1}},
            "tools must be a list",
        ),
        ({"run_type": "llm", "inputs": {}}, "inputs.messages must be a list"),
        ({"run_type": "llm", "inputs": {"messages": [[5]]}}, "inputs.messages[0][0] is no message"),
    ],
)
def test_bad_row_is_named_and_others_count_when_a_log_has_one(
    lint: Lint, row: Row, said: str
) -> None:
    """What is wrong with one row is said with its field; the good rows are linted."""
    report = lint([openai(0), row, openai(1)])
    assert [bad.line for bad in report.bad] == [2]
    assert said in report.bad[0].message
    assert [finding.cause for finding in report.findings] == ["timestamp"]


@pytest.mark.parametrize(
    "prompt", [[1, 2], [[1, 2], [3]], ["a", "b"]], ids=["ids", "lists of ids", "texts"]
)
def test_row_of_an_export_is_read_when_its_prompts_are_a_list(lint: Lint, prompt: Any) -> None:
    """All that completions take is read; token ids hold no text, and nothing is found in them."""
    rows = [{"request": {"model": "m", "prompt": prompt}, "text": "x"}, openai(0), openai(1)]
    report = lint(rows)
    assert not report.bad
    assert [finding.cause for finding in report.findings] == ["timestamp"]


@pytest.mark.parametrize("indent", [None, 2])
def test_one_json_document_is_read_when_a_file_is_no_json_lines(indent: int | None) -> None:
    """A list of requests, or one request over many lines, is read as what it is."""
    rows = [openai(0), openai(1)]
    found = list(read_rows(json.dumps(rows, indent=indent).encode().splitlines(keepends=True)))
    assert [getattr(row, "row", None) for row in found] == rows
    one = json.dumps(openai(0), indent=2).encode().splitlines(keepends=True)
    assert [getattr(row, "row", None) for row in read_rows(one)] == rows[:1]


def test_first_line_is_read_when_a_mark_of_byte_order_stands_before_it() -> None:
    """Windows editors write one."""
    line = json.dumps(openai(1)).encode()
    rows = list(read_rows([b"\xef\xbb\xbf" + line + b"\n", line]))
    assert not any(isinstance(row, BadRow) for row in rows)
    assert len(rows) == 2


def test_rows_before_the_break_count_when_a_packed_file_is_cut() -> None:
    """A gzip file that ends too early is named with the line from which it cannot be read."""
    packed = gzip.compress(b"".join(json.dumps(openai(i)).encode() + b"\n" for i in range(9)))
    assert len(list(read_rows(plain_lines(io.BytesIO(packed))))) == 9
    *_, last = read_rows(plain_lines(io.BytesIO(packed[:-20])))
    assert isinstance(last, BadRow)
    assert "broken" in last.message


def test_lines_are_numbered_as_in_the_file_when_some_are_empty() -> None:
    """Empty lines are skipped and counted; a broken one keeps its number and text."""
    found = list(read_rows([b"\n", b'{"a":1}\n', b"\n", b"oops\n"]))
    assert [row.line for row in found] == [2, 4]
    assert isinstance(found[1], BadRow)
    assert found[1].text == b"oops\n"
