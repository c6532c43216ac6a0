"""Tool calls are found in text of any family, wherever the text is cut."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.tool_format import FORMATS, ToolFormat, recognise
from gateway.backends.tool_parser import ToolParser

CALLS = [
    ("get_weather", {"city": 'Paris "FR"', "days": [1, {"a": None}]}),
    ("f-2", {}),
    ("get", {"text": "}] ) </tool_call> [TOOL_CALLS] {", "emoji": "🌙\\"}),
]


def written(form: ToolFormat, calls: list[tuple[str, Any]], text: str = "") -> str:
    """Write calls as a model of the family does."""

    def arguments(value: Any) -> str:
        if form.python:
            pairs = (f"{key}={json.dumps(one, ensure_ascii=False)}" for key, one in value.items())
            return ", ".join(pairs)
        return json.dumps(value, ensure_ascii=False)

    each = [
        form.before_name + name + form.after_name + arguments(value) + form.after_arguments
        for name, value in calls
    ]
    return text + form.opening + form.separator.join(each) + form.closing


def read(form: ToolFormat, pieces: list[str]) -> tuple[str, list[tuple[str, Any]]]:
    parser = ToolParser(form)
    text = ""
    calls: dict[int, tuple[str, str]] = {}
    ids = set()
    for piece in pieces:
        found = parser.push(piece)
        text += found.text
        for call in found.calls:
            if "id" in call:
                ids.add(call["id"])
                calls[call["index"]] = (call["function"]["name"], "")
            else:
                name, so_far = calls[call["index"]]
                calls[call["index"]] = (name, so_far + call["function"]["arguments"])
    text += parser.flush().text
    assert len(ids) == len(calls) == parser.num_calls
    return text, [(name, json.loads(arguments)) for name, arguments in calls.values()]


@pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))
@given(data=st.data())
def test_calls_are_found_when_text_is_cut_anywhere(form: ToolFormat, data: st.DataObject) -> None:
    """Names, arguments and their order arrive whatever pieces the text comes in."""
    calls = data.draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3))
    before = "Let me look.\n" if form.anywhere and data.draw(st.booleans()) else ""
    whole = written(form, calls, before)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=12)))
    places = [0, *cuts, len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(places)]
    assert read(form, pieces) == (before.rstrip(), calls)


@pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))
@pytest.mark.parametrize(
    "text", ["Hello there. ", "", "a < b <tool", " <tool_cal> x\n\n", "see (1) [2] {3}", "a [TOOL_"]
)
def test_text_is_kept_when_nothing_is_called(form: ToolFormat, text: str) -> None:
    """What only looks like the beginning of a call is text to the last character."""
    assert read(form, list(text)) == (text, [])


@pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))
def test_name_comes_first_when_arguments_are_cut_off(form: ToolFormat) -> None:
    """A call that a limit cuts keeps its name, and nothing of its markup becomes text."""
    whole = written(form, CALLS[:1])
    parser = ToolParser(form)
    found = parser.push(whole[: whole.index("Paris")])
    assert found.text == parser.flush().text == ""
    assert found.calls[0]["function"] == {"name": "get_weather", "arguments": ""}
    assert form.python or "".join(
        call["function"]["arguments"] for call in found.calls[1:]
    ).startswith('{"city"')


def test_arguments_come_in_pieces_when_they_are_streamed() -> None:
    """Each piece goes out as soon as it is there."""
    parser = ToolParser(FORMATS["hermes"])
    parser.push('<tool_call>\n{"name": "f", "arguments": ')
    pieces = [parser.push(piece).calls for piece in ('{"a"', ": 1", "}}\n</tool_call>")]
    assert [[call["function"]["arguments"] for call in calls] for calls in pieces] == [
        ['{"a"'],
        [": 1"],
        ["}"],
    ]


def test_ids_are_short_when_the_family_takes_no_others() -> None:
    """Mistral's templates refuse ids that are not nine letters and digits."""
    assert len(FORMATS["mistral"].new_id()) == 9
    assert FORMATS["mistral"].new_id().isalnum()
    assert FORMATS["hermes"].new_id() != FORMATS["hermes"].new_id()


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("", "hermes"),
        ("{{ '<tool_call>' }}", "hermes"),
        ("[TOOL_CALLS] [", "mistral"),
        ("[TOOL_CALLS]{{ name }}[ARGS]", "mistral_v11"),
        ("'<｜tool▁calls▁begin｜>' ```json", "deepseek_v3"),
        ("'<｜tool▁calls▁begin｜>'", "deepseek_v31"),
        ('{"name": function name, "parameters": dictionary}', "llama3_json"),
        ("[func_name1(params_name1=params_value1)]", "pythonic"),
    ],
)
def test_format_is_the_templates_when_it_speaks_of_one(template: str, name: str) -> None:
    """The chat template says how its model was trained to call."""
    assert recognise(template).name == name
