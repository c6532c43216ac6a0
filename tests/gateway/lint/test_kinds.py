"""Kinds of logs that users brought: what is a fault in them, and what is none."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.gateway.lint.conftest import Desk, Lint
from tests.gateway.lint.logs import chat
from tests.gateway.lint.texts import DE, EN, ZH, Texts

RULES = "\n".join((EN.intro, *EN.rules))
CHUNKS = (*EN.chunks, *(f"{chunk} This is told again here." for chunk in EN.chunks))[:5]
Layout = Callable[[Sequence[str]], str]


def asked(at: int, texts: Texts = EN) -> str:
    return texts.questions[at % len(texts.questions)]


def shuffled(layout: Layout, count: int = 10) -> list[dict[str, Any]]:
    rng = random.Random(1)
    return [
        chat(("system", RULES), ("user", f"{layout(rng.sample(CHUNKS, 4))}\n\n{asked(at)}"))
        for at in range(count)
    ]


def _headed(chunks: Sequence[str]) -> str:
    return "Context:\n" + "\n\n".join(chunks)


def _marked_by_id(chunks: Sequence[str]) -> str:
    parts = (f'<document id="{CHUNKS.index(c)}">\n{c}\n</document>' for c in chunks)
    return "<documents>\n" + "\n".join(parts) + "\n</documents>"


def _marked_by_rank(chunks: Sequence[str]) -> str:
    return "\n".join(f'<doc index="{at}">{chunk}</doc>' for at, chunk in enumerate(chunks, 1))


def _scored(chunks: Sequence[str]) -> str:
    return "\n\n".join(
        f"Result {at} (score 0.{95 - at * 7}): {chunk}" for at, chunk in enumerate(chunks, 1)
    )


@pytest.mark.parametrize("layout", [_headed, _marked_by_id, _marked_by_rank, _scored])
def test_order_of_passages_is_the_only_fault_when_they_are_labelled(
    lint: Lint, layout: Layout
) -> None:
    """A heading, tags, ranks and scores hide no passage, and other passages are no fault."""
    report = lint(shuffled(layout))
    assert [finding.cause for finding in report.findings] == ["retrieval_order"], report.findings
    assert report.hit_share < report.reachable_share <= 1


@pytest.mark.parametrize("layout", [_headed, _marked_by_id])
def test_whole_passages_move_when_a_heading_or_tags_stand_about_them(
    desk: Desk, layout: Layout
) -> None:
    """Each goes with its tags, the heading stays in front, and the share rises."""
    before, fixed, rows = desk.fix(shuffled(layout, 24))
    assert fixed.after.hit_share > before.hit_share + 0.05
    for row, mended in zip(shuffled(layout, 24), rows, strict=True):
        ours, theirs = (r["messages"][1]["content"] for r in (row, mended))
        assert sorted(ours.split("\n")) == sorted(theirs.split("\n"))
        assert ours.split("\n")[0] == theirs.split("\n")[0]
        assert ours.rsplit("\n\n", 1)[1] == theirs.rsplit("\n\n", 1)[1]


def test_models_are_families_of_their_own_when_one_log_has_several(lint: Lint) -> None:
    """No cache holds text for two models, so nothing is lost between them."""
    rows = [
        {**chat(("system", f"{name}\n{RULES}"), ("user", asked(at))), "model": name}
        for at in range(4)
        for name in ("red", "green", "blue")
    ]
    assert not lint(rows).findings


@pytest.mark.parametrize("count", [3, 5])
def test_summary_in_place_of_turns_is_named_when_a_chat_is_summed_up(
    lint: Lint, count: int
) -> None:
    """Each new summary is the same fault, though little of what follows was said before."""
    rows, said = [], [("system", RULES)]
    for at in range(7):
        said.append(("user", f"{asked(at)} ({at})"))
        summary = ("system", f"Summary so far: {at} questions were asked, and all were answered.")
        rows.append(chat(said[0], summary, *said[-3:]) if at >= count else chat(*said))
        said.append(("assistant", f"{EN.answers[at % len(EN.answers)]} That was number {at}."))
    (found,) = lint(rows).findings
    assert (found.cause, found.name) == ("edited_history", "summarised")
    assert found.position.field == "messages[1].content"
    assert found.requests == len(rows) - count
    assert found.lost_per_1000 > 0


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        (EN, "Today is {day}, November {at}, 2026."),
        (DE, "Heute ist {tag}, der {at}. November 2026."),
        (ZH, "今天是2026年11月{at}日。"),
    ],
    ids=["en", "de", "zh"],
)
def test_date_is_one_fault_when_its_day_has_a_name(lint: Lint, texts: Texts, line: str) -> None:
    """Names of days and months are part of the value, not of its label."""
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    tage = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")
    rules = "\n".join((texts.intro, *texts.rules))
    rows = [
        chat(
            ("system", f"{line.format(day=days[at % 7], tag=tage[at % 7], at=at)}\n{rules}"),
            ("user", asked(turn, texts)),
        )
        for at in range(2, 28, 3)
        for turn in range(2)
    ]
    assert [finding.cause for finding in lint(rows).findings] == ["timestamp"]


def test_fact_behind_a_question_is_no_fault_when_it_changes(lint: Lint) -> None:
    """The mend that is asked for raises no other fault, be it short and not ASCII."""
    rules = "\n".join((DE.intro, *DE.rules))
    rows = [
        chat(("system", rules), ("user", f"{asked(at, DE)}\n\nHeute ist der 30.11.2026, 9 Uhr."))
        for at in range(8)
    ]
    assert not lint(rows).findings


@pytest.mark.parametrize(
    ("rows", "mended"),
    [
        (
            [
                chat(("system", f"Request #{1000 + at}\n{RULES}"), ("user", asked(at)))
                for at in range(30)
            ],
            [chat(("system", RULES), ("user", asked(at))) for at in range(30)],
        ),
        (shuffled(_marked_by_id, 30), None),
    ],
    ids=["counter", "documents"],
)
def test_reach_is_near_what_the_mended_log_gives(
    lint: Lint, desk: Desk, rows: list[dict[str, Any]], mended: list[dict[str, Any]] | None
) -> None:
    """The estimate is held against a replay; of documents it is the least."""
    told = lint(rows).reachable_share
    if mended is None:
        assert told <= desk.fix(rows)[1].after.hit_share + 0.05
    else:
        assert abs(told - lint(mended).hit_share) < 0.04
