"""Where a fault is said to stand: the JSON path in the row, whatever the row is."""

import json
from typing import Any

import pytest

from gateway.lint.locator import json_place
from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import TOOLS, chat
from tests.gateway.lint.texts import EN

RULES = "\n".join((EN.intro, *EN.rules))


def call(call_id: str, arguments: str) -> dict[str, Any]:
    function = {"name": "find_room", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def agent(at: int, arguments: str) -> dict[str, Any]:
    row = chat(("system", RULES), ("user", "Book one."))
    name = f"call_{at}77ab{at}"
    row["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call(name, arguments)]},
        {"role": "tool", "tool_call_id": name, "content": RULES},
        {"role": "user", "content": f"And {at} more?"},
    ]
    return row


def test_id_of_a_call_is_no_fault_when_the_template_does_not_show_it(lint: Lint) -> None:
    """What never gets into the prompt splits nothing."""
    report = lint([agent(at, '{"day": "Monday"}') for at in range(5)])
    assert not report.findings
    assert report.hit_share > 0.7


def test_path_is_that_of_the_call_when_its_arguments_change(lint: Lint) -> None:
    """The place is in the call, and not in the content, which is null."""
    report = lint([agent(0, f'{{"token": "{at}f{at}e77b{at}c9a{at}d"}}') for at in range(5)])
    (found,) = report.findings
    path = "messages[2].tool_calls[0].function.arguments"
    assert (found.cause, found.position.field) == ("edited_history", path)
    assert found.position.char == len('{"token": "')
    assert found.position.message == 2


def test_message_is_told_by_its_place_in_the_request_when_there_are_tools(lint: Lint) -> None:
    """Tools stand before the messages in a prompt, and are not counted as one."""
    said: list[tuple[str, str]] = [("system", RULES)]
    for at in range(6):
        asked = f"{EN.questions[at % len(EN.questions)]} ({at})"
        said += [("user", asked), ("assistant", f"{EN.answers[at % len(EN.answers)]} {at}")]
    rows = [chat(*said[:8], tools=TOOLS), chat(said[0], *said[3:10], tools=TOOLS)]
    (found,) = lint(rows).findings
    assert (found.cause, found.position.field) == ("edited_history", "messages[1].content")
    assert "2 messages from messages[1] (user) on were dropped" in found.detail


@pytest.mark.parametrize(
    ("mark", "path", "char"), [("X", "[1].a.b[0]", 4), ("Y", "[1].a.c", 2), ("Z", "[2]", 0)]
)
def test_part_of_json_is_found_when_it_holds_a_character(mark: str, path: str, char: int) -> None:
    """Every character of compact JSON belongs to one part, and stands there in its text."""
    value = ['\n\u00e9"', {"a": {"b": ['\\"\n\u00e9X'], "c": "__Y"}}, "Z", 5]
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert json_place(value, text.index(mark)) == (path, char)
    assert all(at >= 0 for _, at in (json_place(value, at) for at in range(len(text))))
