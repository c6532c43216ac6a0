"""An answer's deltas as a row of blocks."""

import pytest

from gateway.answer import Assembler
from gateway.backends.base import Delta, Event, Finish
from gateway.blocks import Begin, BlockEvent, BlockReader, End, More, blocks_of, collect
from tests.fakes.answers import ANSWERS, CALLED_TWICE, INTERLEAVED, call, ended


def read(script: list[Event]) -> list[BlockEvent]:
    reader = BlockReader()
    return [one for event in script for one in reader.read(event)]


@pytest.mark.parametrize("name", ANSWERS)
def test_blocks_come_one_after_the_other_whatever_is_said(name: str) -> None:
    """A block is begun and ended once, and grows only in between."""
    is_open = False
    for event in read(ANSWERS[name]):
        assert is_open != isinstance(event, Begin)
        is_open = not isinstance(event, End)
    assert not is_open


@pytest.mark.parametrize("name", ANSWERS)
def test_whole_answer_has_the_blocks_of_its_stream(name: str) -> None:
    """What is kept of an answer gives the same blocks again."""
    assembler = Assembler()
    for event in ANSWERS[name]:
        assembler.add(event)
    assert assembler.answer is not None
    assert blocks_of(assembler.answer) == collect(read(ANSWERS[name]))


def test_calls_are_whole_when_their_pieces_are_interleaved() -> None:
    """Nothing of two calls that grow at once is lost or mixed."""
    told = [(block.name, block.text, block.call_id) for block in collect(read(INTERLEAVED))]
    assert told == [
        ("weather", '{"city": "Rome"}', "call_0"),
        ("time", '{"zone": 1}', "call_1"),
    ]


def test_second_call_is_streamed_at_once_when_the_first_is_complete() -> None:
    """Calls in a row do not wait for the end of the answer."""
    reader = BlockReader()
    events = [list(reader.read(event)) for event in CALLED_TWICE]
    assert events[1] == [End(), Begin("tool_call", "call_1", "time")]
    assert events[2] == [More("{}")]


def test_second_call_is_given_when_the_first_never_becomes_json() -> None:
    """A call that a limit cut does not swallow the next one."""
    script = ended(call(0, name="a", arguments='{"x'), call(1, name="b", arguments="{}"))
    assert [block.text for block in collect(read(script))] == ['{"x', "{}"]


def test_name_is_awaited_when_a_call_begins_without_one() -> None:
    """A block that begins has its name, and gets an id where the server gave none."""
    piece = {"index": 0, "function": {"arguments": "{"}}
    later = {"index": 0, "function": {"name": "f", "arguments": "}"}}
    script: list[Event] = [Delta(0, tool_calls=[piece]), Delta(0, tool_calls=[later])]
    begin, *more = read([*script, Finish(0, "tool_calls")])
    assert isinstance(begin, Begin)
    assert begin.name == "f"
    assert begin.call_id.startswith("call_")
    assert more == [More("{}"), End()]


def test_other_choices_are_left_out_when_there_are_several() -> None:
    """These APIs answer once."""
    assert read([Delta(1, "other"), Finish(1, "stop"), Delta(0, "mine")]) == [
        Begin("text"),
        More("mine", []),
    ]
