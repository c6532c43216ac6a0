"""Traffic whose prompts are laid out well is not blamed, however alike its requests look."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.scenarios import Words
from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import TOOLS, chat

Row = dict[str, Any]
ALLOWED = 0.02


def questions(words: Words) -> Iterator[Row]:
    """Ask short questions that differ in a number, a date or a name only."""
    rules = words.text(60)
    for at in range(80):
        yield chat(("system", rules), ("user", f"What is {at * 7} plus {at * 3 + 1}?"))
        yield chat(("system", rules), ("user", f"What happened on 2025-0{at % 9 + 1}-1{at % 10}?"))
        yield chat(("system", rules), ("user", f"Who is user_{at * 977}x{at} of {words.text(3)}"))


def conversations(words: Words) -> Iterator[Row]:
    """Hold conversations that only grow, some with the same first question, some asked again."""
    rules, same = words.text(60), words.text(15)
    for at in range(30):
        said = [("system", rules), ("user", same if at % 3 == 0 else words.text(15))]
        for _ in range(5):
            yield chat(*said)
            said = [*said, ("assistant", words.text(25)), ("user", words.text(12))]
        yield chat(*said[:-1], ("user", words.text(12)))


def branches(words: Words) -> Iterator[Row]:
    """Ask something else in the middle of a conversation, and go on from there."""
    said = [("system", words.text(60)), ("user", words.text(15))]
    said += [("assistant", words.text(25)), ("user", words.text(12))]
    for _ in range(30):
        branch = [*said[:3], ("user", words.text(12)), ("assistant", words.text(25))]
        yield chat(*branch[:4])
        yield chat(*branch, ("user", words.text(10)))


def retrieval(words: Words) -> Iterator[Row]:
    """Put different passages, always by their place in the book, before each question."""
    rules, book = words.text(40), [words.text(40) for _ in range(40)]
    for _ in range(120):
        chosen = sorted(words.rng.sample(range(len(book)), 4))
        passages = "\n\n".join(book[at] for at in chosen)
        yield chat(("system", rules), ("user", f"{passages}\n\n{words.text(8)}"))


def templates(words: Words) -> Iterator[Row]:
    """Fill one template with items that stand last."""
    template = words.text(100)
    for at in range(120):
        yield chat(("user", f"{template}\n\nItem {at}: {words.text(15)}"))


def agents(words: Words) -> Iterator[Row]:
    """Let agents read the same files for different tasks; the context only grows."""
    rules, files = words.text(60), [words.text(80) for _ in range(4)]
    for _ in range(30):
        said = [("system", rules), ("user", words.text(15))]
        for at in words.rng.sample(range(4), 3):
            yield chat(*said, tools=TOOLS)
            said = [*said, ("assistant", f"read file {at}"), ("user", files[at])]


def programs(words: Words) -> Iterator[Row]:
    """Serve many programs, each with its own rules, of which some sentences are alike."""
    shared = words.text(10)
    for _ in range(30):
        rules = f"{words.text(60)} {shared} {words.text(30)}"
        for _ in range(4):
            yield chat(("system", rules), ("user", words.text(12)))


TRAFFIC: list[Callable[[Words], Iterator[Row]]] = [
    questions,
    conversations,
    branches,
    retrieval,
    templates,
    agents,
    programs,
]


@pytest.mark.parametrize("traffic", TRAFFIC, ids=lambda traffic: traffic.__name__)
def test_clean_traffic_is_hardly_blamed(
    lint: Lint, traffic: Callable[[Words], Iterator[Row]]
) -> None:
    """Fewer than two in a hundred clean prompts are blamed for anything."""
    rows = list(traffic(Words(7)))
    report = lint(rows)
    assert report.requests == len(rows)
    blamed = sum(finding.requests for finding in report.findings)
    assert blamed < ALLOWED * len(rows), report.findings
