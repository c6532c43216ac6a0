"""What a user or a model wrote is never put in another order or form by ``--fix``."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.lint.finding import Finding, Position
from gateway.lint.json_survey import JsonSurvey
from gateway.lint.mender import MENDED, Mender
from gateway.lint.passages import may_move
from tests.gateway.lint.logs import TOOLS, chat
from tests.gateway.lint.texts import EN

Row = dict[str, Any]
STEPS = ("Boil the water", "Cut the onions", "Add salt and oil", "Stir for ten minutes")
FACTS = ('{"b": 1, "a": 2, "note": "as it was told"}', '{"a": 2, "b": 1, "note": "as told"}')
LONG = tuple(f"{chunk} {chunk[:40]}" for chunk in EN.chunks)
NUMBERED = tuple(f"{n}. {step}" for n, step in enumerate(STEPS, start=1))
ASKED = ("What is the right order of these?", "Sort these:", "Which passage is the second one?")


def everything() -> Mender:
    """Return a mender that was told of every fault, in every role."""
    place = Position("log", 1, "messages[0].content", 0, 0, 0)
    found = [
        Finding(
            cause=cause, name="", detail="", mend="", role=role, label="Now: ", position=place,
            seen="log:1", requests=1,
        )
        for cause in sorted(MENDED)
        for role in ("system", "user", "assistant", "tool", "tools")
    ]  # fmt: skip
    return Mender(found)


def mended(rows: list[Row]) -> list[Row]:
    mender = everything()
    for row in rows:
        mender.learn(row)
    return [mender.mend(row) for row in rows]


def shuffled(lines: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.permutations(list(lines))


WORDS = st.one_of(
    shuffled(STEPS),
    shuffled(NUMBERED),
    shuffled(FACTS),
    shuffled(("def f(x):", "    return g(x)", "    # then the rest of what follows here")),
    st.tuples(st.sampled_from(ASKED), shuffled(LONG)).map(lambda told: [told[0], *told[1]]),
)


@given(st.lists(st.tuples(WORDS, st.sampled_from(("\n", "\n\n"))), min_size=4, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_words_of_users_and_models_stay_when_anything_is_mended(
    told: list[tuple[list[str], str]],
) -> None:
    """Facts that stood in the system prompt become a message of their own."""
    rows = []
    for at, (blocks, gap) in enumerate(told):
        text = gap.join(blocks)
        system = f"Help.\nNow: 2026-11-30T10:00:{at:02}Z\n" + '{"x": 1, "y": 2}'
        said = (("system", system), ("user", text), ("assistant", text), ("user", text))
        rows.append(chat(*said, tools=TOOLS[at % 3 :] + TOOLS[: at % 3]))
    for row, after in zip(rows, mended(rows), strict=True):
        fact = row["messages"][0]["content"].splitlines()[1]
        assert after["messages"][1:4] == row["messages"][1:]
        assert after["messages"][4:] == [{"role": "system", "content": fact}]


@given(st.lists(st.tuples(shuffled(LONG), st.sampled_from(EN.questions)), min_size=4, max_size=8))
@settings(max_examples=40, deadline=None)
def test_passages_and_question_are_the_same_when_passages_move(
    told: list[tuple[list[str], str]],
) -> None:
    """A retriever's passages change places among themselves; the question stays the last."""
    rows = [chat(("user", "\n\n".join([*passages, question]))) for passages, question in told]
    for row, after in zip(rows, mended(rows), strict=True):
        ours, theirs = (r["messages"][0]["content"].split("\n\n") for r in (row, after))
        assert Counter(ours) == Counter(theirs)
        assert ours[-1] == theirs[-1]


@pytest.mark.parametrize(
    ("blocks", "own"),
    [
        ([LONG[0]], ""),
        ([LONG[0]], "Which of these is in the right order?"),
        ([LONG[0]], "Summarise the second paragraph."),
        ([LONG[0]], "Sortiere die Absätze."),
        ([LONG[0]], "把这些段落按顺序排列。"),
        ([STEPS[0]], "Why?"),
        ([f"1. {LONG[0]}"], "Why?"),
        ([f"Step 1: {LONG[0]}"], "Why?"),
        ([f"Then {LONG[0] * 2}"], "Why?"),
    ],
)
def test_nothing_moves_when_it_may_be_the_users_own_order(blocks: list[str], own: str) -> None:
    """Short lines, steps, and text whose question speaks of order are left."""
    assert not may_move(blocks, own)


@pytest.mark.parametrize("rank", ["[3] ", "Document 2: ", "Source 7 - ", "Ann: "])
def test_passages_stay_when_they_bear_a_number_or_speaker(rank: str) -> None:
    """The number of a passage is that of its place, or may be cited."""
    assert not may_move([f"{rank}{LONG[0]}"], "Why?")


@pytest.mark.parametrize("label", ["", "Document: ", "[Source] "])
def test_passages_move_when_a_question_stands_beside_them(label: str) -> None:
    """Retrieved text, with or without what it is called."""
    assert may_move([f"{label}{LONG[0]}"], "Where is my order, and what does the fee pay for?")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        f"{'[' * 200}{{}}{']' * 200}",
        '{"a": [1, 2',
        "[1, 2]",
        "[[link]](x) {}",
    ],
)
def test_json_is_left_when_writing_it_again_would_change_it(text: str) -> None:
    """Keys that stand twice, what is no JSON or too deep, and lists stay as they are."""
    survey = JsonSurvey()
    survey.learn('{"b": 2, "a": 1} {"a":1,"b":2} {"a": 1}{"a":1}')
    assert survey.arrange(f"x {text} y") == f"x {text} y"


@given(
    st.permutations(["15.00", "7.0", "1e3", "-0", "1E400", "0.10", "1" * 5000]),
    st.permutations("abcdefg"),
)
def test_numbers_keep_their_spelling_when_keys_are_ordered(
    numbers: list[str], keys: list[str]
) -> None:
    """A price of 15.00 stays one of 15.00 (w_price_float)."""
    survey = JsonSurvey()
    pairs = dict(zip(keys, numbers, strict=True))
    shown = [", ".join(f'"{key}": {pairs[key]}' for key in order) for order in (keys, keys[::-1])]
    for text in shown:
        survey.learn(f"{{{text}}}")
    ordered = ",".join(f'"{key}":{pairs[key]}' for key in sorted(keys))
    assert survey.arrange(f"x {{{shown[0]}}} y") == f"x {{{ordered}}} y"


@pytest.mark.parametrize(
    "rule",
    [
        "Apply the first key of the profile that fits.",
        "Take the first that fits.",
        "Go through them in this order.",
        "Der erste Schlüssel gilt.",
        "优先使用第一个字段。",
    ],
)
def test_keys_stay_when_the_system_prompt_speaks_of_their_order(rule: str) -> None:
    """The order of keys may be an instruction, also of what a tool returns (x_sysjson)."""
    rows = [
        chat(("system", f"Profile: {facts}\n{rule}"), ("user", "Hi"), ("tool", facts))
        for facts in FACTS * 2
    ]
    assert json.dumps(mended(rows)) == json.dumps(rows)


def test_only_json_that_varies_is_written_anew() -> None:
    """An example of an answer keeps the order of its fields, which a model follows."""
    survey = JsonSurvey()
    example = '{"reason": "…", "answer": 1}'
    for facts in ('{"b": 1, "a": 2}', '{"a": 3, "b": 4}'):
        survey.learn(f"{facts} Answer like {example}")
    assert survey.arrange(f'{{"b": 5, "a": 6}} {example}') == f'{{"a":6,"b":5}} {example}'


def test_own_words_stay_in_a_whole_log_when_users_sort_steps() -> None:
    """Many users who ask for the order of the same steps are not taken for a retriever."""
    rows = [
        chat(("system", EN.intro), ("user", "\n".join([ASKED[0], *NUMBERED[at:], *NUMBERED[:at]])))
        for at in range(4)
    ]
    assert json.dumps(mended(rows)) == json.dumps(rows)
