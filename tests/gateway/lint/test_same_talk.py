"""Agents that use the same tools for other tasks are no conversation whose history was edited."""

from typing import Any

import pytest

from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import chat
from tests.gateway.lint.texts import EN

Row = dict[str, Any]
RULES = "\n".join((EN.intro, *EN.rules))
RESULT = "The visitor pays by card, lives uptown and has been a member for eleven years."
STEPS = 4


def agents(*tasks: str) -> list[Row]:
    """Call one tool again and again, which always returns the same; contexts only grow."""
    rows = []
    for task in tasks:
        said = [("system", RULES), ("user", task)]
        for _ in range(STEPS):
            rows.append(chat(*said))
            said += [("assistant", "find()"), ("tool", RESULT)]
    return rows


@pytest.mark.parametrize(
    "tasks",
    [
        ("Do you deliver to Basel?", "Can I pay by card?", "Where is my invoice?"),
        ("Where is invoice 12?", "Where is invoice 13?", "Where is invoice 144?"),
        ("Do you deliver to Basel?", "Give me a summary of the bill.", "Summarised: what is due?"),
    ],
    ids=["questions", "numbers", "summaries asked for"],
)
def test_nothing_is_summed_up_when_another_task_uses_the_same_tools(
    lint: Lint, tasks: tuple[str, ...]
) -> None:
    """A shorter context of another task holds none of what the first user said."""
    assert not lint(agents(*tasks)).findings


def test_summary_is_named_when_it_repeats_the_task_of_an_agent(lint: Lint) -> None:
    """An agent whose first turns became one message goes on with the same task."""
    task = "Find out whether the visitor may book the large room on Monday."
    rows = agents(task)
    summed = f"Summary of the conversation so far: the task is: {task} Tools were called."
    kept = [("assistant", "find()"), ("tool", RESULT)] * (STEPS - 2)
    rows.append(chat(("system", RULES), ("user", summed), *kept))
    (found,) = lint(rows).findings
    assert (found.cause, found.name) == ("edited_history", "summarised")
