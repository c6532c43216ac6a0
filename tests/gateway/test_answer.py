"""Answers: assembled from events, kept as bytes, replayed as events."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.answer import Answer, Assembler, Choice, decode, encode
from gateway.backends.base import Delta, Final, Finish, TokenLogprob, TopLogprob, Usage
from gateway.replay import replay

calls = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(max_size=5),
            "type": st.just("function"),
            "function": st.fixed_dictionaries({"name": st.text(), "arguments": st.text()}),
        }
    ),
    max_size=3,
).map(lambda rows: [{"index": index, **row} for index, row in enumerate(rows)])
logprobs = st.none() | st.lists(
    st.builds(
        TokenLogprob,
        token=st.text(),
        logprob=st.floats(-99, 0),
        bytes=st.none() | st.lists(st.integers(0, 255), max_size=4),
        top_logprobs=st.lists(
            st.builds(TopLogprob, token=st.text(), logprob=st.floats(-99, 0)), max_size=2
        ),
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    choices = []
    for index in range(draw(st.integers(1, 3))):
        tools = draw(calls)
        text = draw(
            st.text(min_size=1, max_size=300) if not tools else st.none() | st.text(min_size=1)
        )
        choices.append(
            Choice(
                index,
                draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter"])),
                text=text,
                refusal=draw(st.none() | st.text(min_size=1)),
                tool_calls=tools,
                logprobs=draw(logprobs),
                extra=draw(st.dictionaries(st.text(min_size=1), st.text(min_size=1), max_size=2)),
            )
        )
    usage = Usage(draw(st.integers(0, 99)), draw(st.integers(0, 99)), draw(st.integers(0, 99)))
    return Answer(choices, usage)


@given(answers())
def test_replayed_answer_assembles_to_itself(answer: Answer) -> None:
    """Nothing is lost between storing an answer and serving it again."""
    assembler = Assembler()
    for event in replay(decode(encode(answer))):
        assembler.add(event)
    assert assembler.answer == answer


def test_answer_is_absent_until_every_choice_and_the_end_are_there() -> None:
    """A stream that stops early never becomes an answer."""
    assembler = Assembler()
    for event in (Delta(0, "a"), Delta(1, "b"), Finish(0, "stop"), Final(Usage(1, 2, 0))):
        assembler.add(event)
        assert assembler.answer is None
    assembler.add(Finish(1, "stop"))
    assert assembler.answer is not None


def test_answer_is_not_storable_when_filtered_or_of_unknown_end() -> None:
    """Only answers that ended by themselves or by their limit may be kept."""
    usage = Usage()
    for choice in (
        Choice(0, "content_filter", text="x"),
        Choice(0, "error", text="x"),
    ):
        assert not Answer([choice], usage).is_storable
    assert Answer([Choice(0, "stop", text="x")], usage).is_storable
    assert Answer([Choice(0, "length", text="x")], usage).is_exact_only


def test_tool_call_deltas_grow_into_whole_calls() -> None:
    """Arguments arrive in pieces; ids and names arrive once and stay."""
    assembler = Assembler()
    pieces = [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a"'}},
        {"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": ":1}"}},
    ]
    for piece in pieces:
        assembler.add(Delta(0, tool_calls=[piece]))
    assembler.add(Finish(0, "tool_calls"))
    assembler.add(Final(Usage()))
    assert assembler.answer is not None
    first, second = assembler.answer.choices[0].tool_calls
    assert first["id"] == "c1"
    assert first["function"] == {"name": "f", "arguments": '{"a":1}'}
    assert second["function"]["name"] == "g"
    assert assembler.answer.choices[0].text is None
