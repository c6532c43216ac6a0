"""Facts that leave a system prompt stay where a conversation put them, and no share falls."""

import random
from itertools import pairwise
from typing import Any

import pytest

from gateway.lint import Report
from tests.gateway.lint.conftest import Desk
from tests.gateway.lint.formats import FORMATS
from tests.gateway.lint.logs import Row, clean_logs, faulty_logs, system_of
from tests.gateway.lint.texts import EN

CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}


def talks(num_talks: int, length: int, clock: str, *, is_agent: bool = False) -> list[Row]:
    """Write conversations turn by turn, some of which begin alike; ``clock`` is their first line.

    In it ``{talk}`` is the number of the conversation and ``{step}`` that of the request.
    """
    rows: list[Row] = []
    for talk in range(num_talks):
        said: list[dict[str, Any]] = [{"role": "user", "content": EN.questions[talk % 3]}]
        for step in range(length):
            system = system_of(EN, clock.format(talk=talk, step=step))
            rows.append({"model": "m", "messages": [{"role": "system", "content": system}, *said]})
            said = [*said, *_next(talk, step, is_agent=is_agent)]
    return rows


def _next(talk: int, step: int, *, is_agent: bool) -> list[dict[str, Any]]:
    text = EN.answers[step % len(EN.answers)]
    if is_agent and step % 2 == 0:
        call = {**CALL, "id": f"c{talk}{step}"}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": text},
        ]
    asked = EN.questions[(talk + step) % len(EN.questions)]
    return [{"role": "assistant", "content": text}, {"role": "user", "content": asked}]


PER_TALK = "Current time: 2026-11-29T10:{talk:02}:00Z"
PER_STEP = "Current time: 2026-11-29T10:{talk:02}:{step:02}Z"
PER_THREE = "Current time: 2026-11-29T10:00:00Z, turn {step}"
TALKS = {
    "start": talks(6, 4, PER_TALK),
    "agent-start": talks(6, 4, PER_TALK, is_agent=True),
    "step": talks(6, 4, PER_STEP),
    "agent-step": talks(6, 4, PER_STEP, is_agent=True),
    "shared": talks(6, 4, PER_THREE),
}


def causes(report: Report) -> set[tuple[str, str]]:
    return {(finding.cause, finding.role) for finding in report.findings}


def assert_no_worse(desk: Desk, rows: list[Row]) -> list[Row]:
    before, fixed, mended = desk.fix(rows)
    assert fixed.after.hit_share >= before.hit_share
    assert causes(fixed.after) <= causes(before)
    return mended


@pytest.mark.parametrize("name", TALKS)
def test_share_does_not_fall_when_facts_of_a_conversation_move(desk: Desk, name: str) -> None:
    """A time of the session's start, or of each step, in a chat or an agent's loop."""
    rows = TALKS[name]
    mended = assert_no_worse(desk, rows)
    assert {row["messages"][0]["content"] for row in mended} == {system_of(EN)}
    for row, after in zip(rows, mended, strict=True):
        said = [m for m in after["messages"][1:] if m["role"] != "system"]
        assert said == row["messages"][1:]


@pytest.mark.parametrize("name", ["start", "agent-start"])
def test_a_fact_stays_in_its_place_when_the_conversation_goes_on(desk: Desk, name: str) -> None:
    """Each request begins with all of the one before it."""
    _, _, mended = desk.fix(TALKS[name])
    for before, after in pairwise(mended):
        if len(after["messages"]) > len(before["messages"]):
            assert after["messages"][: len(before["messages"])] == before["messages"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("clock", [PER_TALK, PER_STEP])
def test_share_does_not_fall_when_a_log_has_another_form(desk: Desk, name: str, clock: str) -> None:
    """Where no system message can stand behind a user's, the fact ends the system prompt."""
    rows = [FORMATS[name].write(row) for row in talks(4, 3, clock)]
    mended = assert_no_worse(desk, rows)
    assert mended != rows


CORPUS = [*faulty_logs(), *clean_logs()]


@pytest.mark.parametrize(("name", "log"), CORPUS, ids=[name for name, _ in CORPUS])
def test_share_does_not_fall_when_any_log_is_mended(desk: Desk, name: str, log: Any) -> None:
    """Every log of the corpus, each beside conversations, in a shuffled order too."""
    rows = [*log.rows, *TALKS["start"][:8]]
    assert_no_worse(desk, rows)
    random.Random(name).shuffle(rows)
    assert_no_worse(desk, rows)


def test_no_empty_message_is_left_when_one_was_nothing_but_a_fact(desk: Desk) -> None:
    """A time in a system message of its own goes with its message."""
    rows = []
    for at in range(5):
        clock = {"role": "system", "content": PER_TALK.format(talk=at)}
        rules = {"role": "system", "content": system_of(EN)}
        asked = {"role": "user", "content": EN.questions[0]}
        rows.append({"model": "m", "messages": [clock, rules, asked]})
    for row, after in zip(rows, assert_no_worse(desk, rows), strict=True):
        clock, rules, asked = row["messages"]
        assert after["messages"] == [rules, asked, clock]


def test_facts_end_the_rules_when_nobody_spoke(desk: Desk) -> None:
    """A request of a system prompt alone keeps its one message."""
    rows = [{**row, "messages": row["messages"][:1]} for row in TALKS["start"]]
    mended = assert_no_worse(desk, rows)
    assert {len(row["messages"]) for row in mended} == {1}


def test_a_mend_is_not_made_and_named_when_it_lowers_the_share(desk: Desk) -> None:
    """Conversations whose last requests came first would share less: they stay as they are."""
    rows = talks(2, 12, PER_TALK)[::-1]
    before, fixed, mended = desk.fix(rows)
    assert before.findings
    assert fixed.not_made == ("facts",)
    assert mended == rows
    assert fixed.after.hit_share == before.hit_share


def test_fact_is_a_block_of_its_own_when_a_client_marks_blocks_for_its_cache(desk: Desk) -> None:
    """Behind the breakpoint, without one: what is marked stays the same for all requests."""
    rows = []
    for at in range(8):
        text = f"Current time: 2026-11-30T10:{at:02}:00Z\n{system_of(EN)}"
        marked = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        said = [{"role": "user", "content": f"What of {at}?"}]
        rows.append({"model": "m", "max_tokens": 9, "system": [marked], "messages": said})
    before, fixed, mended = desk.fix(rows)
    assert fixed.after.hit_share > before.hit_share
    assert not fixed.after.findings
    for at, row in enumerate(mended):
        rules, clock = row["system"]
        assert rules == {**rows[at]["system"][0], "text": system_of(EN)}  # type: ignore[index]
        assert clock == {"type": "text", "text": f"Current time: 2026-11-30T10:{at:02}:00Z"}
        assert row["messages"] == rows[at]["messages"]
