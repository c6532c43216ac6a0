"""The mended copy shares more, says the same, and leaves alone what needs its author."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.lint.conftest import Desk
from tests.gateway.lint.logs import Log, Row, chat, clean_logs, faulty_logs, question, system_of
from tests.gateway.lint.texts import EN, ZH

LEFT = ("edited_history", "unicode_form")  # characters of another width are others
FAULTY = {name: log for name, log in faulty_logs() if name[:2] in ("en", "zh", "de")}


def texts(value: Any) -> Iterator[str]:
    """Give all texts of a request but its roles."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from (name, *texts(inner)) if name not in ("role", "content") else ()
            yield from texts(inner) if name == "content" else ()
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    else:
        yield str(value)


def words(row: dict[str, Any]) -> Counter[str]:
    return Counter(char for text in texts(row) for char in text if char.isalnum())


@pytest.mark.parametrize("name", [name for name, log in FAULTY.items() if log.cause not in LEFT])
def test_mended_copy_shares_more_and_says_the_same_when_a_fault_can_be_mended(
    desk: Desk, name: str
) -> None:
    """No fault is left, the hit share is higher, and every request keeps its characters."""
    log: Log = FAULTY[name]
    before, fixed, rows = desk.fix(log.rows)
    assert not fixed.after.findings, fixed
    assert fixed.after.hit_share > before.hit_share
    assert fixed.changed > 0
    assert fixed.diff
    assert list(map(words, rows)) == list(map(words, log.rows))


@pytest.mark.parametrize("name", [name for name, log in FAULTY.items() if log.cause in LEFT])
def test_nothing_is_changed_when_the_mend_needs_an_author(desk: Desk, name: str) -> None:
    """Rewritten conversations and other characters stay as they are, and are still reported."""
    _, fixed, rows = desk.fix(FAULTY[name].rows)
    assert rows == FAULTY[name].rows
    assert fixed.changed == 0
    assert fixed.after.findings


@pytest.mark.parametrize("log", [log for name, log in clean_logs() if name.startswith("en")])
def test_nothing_is_changed_when_a_log_is_clean(desk: Desk, log: Log) -> None:
    """A clean log is copied."""
    _, fixed, rows = desk.fix(log.rows)
    assert rows == log.rows
    assert not fixed.diff


def test_lines_that_belong_together_stay_together_when_chunks_move(desk: Desk) -> None:
    """A title is never parted from its text: such a log is left to its author."""
    chunks = [f"{chunk[:20]} as title\n{chunk}" for chunk in EN.chunks]
    orders = [(0, 1, 2, 3), (2, 0, 3, 1), (3, 1, 0, 2), (1, 3, 2, 0), (2, 3, 0, 1), (1, 0, 3, 2)]
    rows = [
        chat(
            ("system", system_of(EN)), ("user", "\n".join([*(chunks[i] for i in order), "Which?"]))
        )
        for order in orders
    ]
    before, fixed, mended = desk.fix(rows)
    assert [finding.cause for finding in before.findings] == ["retrieval_order"]
    for row in mended:
        assert all(chunk in row["messages"][1]["content"] for chunk in chunks)
    assert fixed.after.hit_share >= before.hit_share


def test_numbered_chunks_stay_when_other_chunks_bear_their_numbers(desk: Desk) -> None:
    """No chunk gets the number of another, which an answer may cite."""
    rows = retrieved([f"[{{n}}] {chunk}" for chunk in EN.chunks], "Why?")
    before, _, mended = desk.fix(rows)
    assert [finding.cause for finding in before.findings] == ["retrieval_order"]
    assert mended == rows


MAILS = [
    f"On {day} Nov {who} wrote: {chunk}"
    for day, who, chunk in zip((3, 4, 5, 6), ("Ann", "Bob") * 2, EN.chunks, strict=True)
]
SYSTEM = system_of(EN)


def retrieved(chunks: list[str], question: str, system: str = SYSTEM, head: str = "") -> list[Row]:
    """Write requests that show the chunks in several orders; ``{n}`` is a chunk's place."""
    orders = [(0, 1, 2, 3), (2, 0, 3, 1), (3, 1, 0, 2), (1, 3, 2, 0), (2, 3, 0, 1)]
    shown = [[chunks[i].format(n=n) for n, i in enumerate(order, 1)] for order in orders]
    texts = ["\n\n".join([*filter(None, [head]), *blocks, question]) for blocks in shown]
    return [chat(("system", system), ("user", text)) for text in texts]


@pytest.mark.parametrize(
    "rows",
    [
        retrieved(MAILS, "What is said?"),
        retrieved([f"Result {{n}} (score 0.9): {chunk}" for chunk in EN.chunks], "Why?"),
        retrieved([f"Ann {at}: {chunk}" for at, chunk in enumerate(EN.chunks)], "Why?"),
        retrieved(list(EN.chunks), "Why?", head="Passages, most relevant first:"),
        retrieved(list(EN.chunks), "Why?", head="In this order:"),
        retrieved(list(ZH.chunks), "为什么？", head="按顺序排列的资料："),
        retrieved(list(EN.chunks), "Why?", system=f"{SYSTEM}\nPassages are sorted by relevance."),
        retrieved([f"#{at}\n\n{chunk}" for at, chunk in enumerate(EN.chunks)], "Why?"),
    ],
    ids=["mails", "scores", "speakers", "relevance", "order", "zh", "system", "headings"],
)
def test_users_passages_stay_when_their_order_or_label_may_count(
    desk: Desk, rows: list[Row]
) -> None:
    """A date, number, speaker or heading never gets another's text, nor an order another order."""
    _, _, mended = desk.fix(rows)
    assert mended == rows


@pytest.mark.parametrize("answer", ["See [1]: it is dear.", "The first passage says so."])
def test_users_passages_stay_when_an_answer_cites_one(desk: Desk, answer: str) -> None:
    """What a model said of a passage stays true."""
    rows = retrieved(list(EN.chunks), "Why?")
    for at, row in enumerate(rows):
        row["messages"] += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": question(EN, at)},
        ]
    _, _, mended = desk.fix(rows)
    assert mended == rows


def test_users_passages_stay_when_they_slide_past_in_one_order(desk: Desk) -> None:
    """Passages that never stood in another order, as in a moving window, are not put in one."""
    told = [f"{chunk} {more}" for more in EN.rules for chunk in EN.chunks]
    rows = [
        chat(("system", SYSTEM), ("user", "\n\n".join([*told[at : at + 5], "Why?"])))
        for at in range(8)
    ]
    _, _, mended = desk.fix(rows)
    assert [row["messages"][1] for row in mended] == [row["messages"][1] for row in rows]


def dated(line: str) -> list[Row]:
    """Write requests whose system prompts hold a line with ``{at}`` in it."""
    return [
        chat(("system", system_of(EN, line.format(at=at))), ("user", question(EN, at)))
        for at in range(6)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Du bist Lena, heute ist der {at}. Dezember 2026, gib niemals Preise heraus.",
        "You help customers in the U.S. today, Dec. {at}, 2026, so be kind. Answer briefly.",
        "You are bot v2.{at}. See shop.example.com/help?sid=f2a74de452e6b43{at} for details.",
        "You are agent 7. Ticket 550{at}: answer in English only. Be brief.",
        "You are Max. It is now 09:0{at} and our shop closes at 18:00; promise nothing then.",
        "The customer's contract ends on 2027-03-2{at}. If that is over, offer a renewal.",
        "Never say more than\nturn {at}\nof the talk to a reader.",
        "Never tell a reader this:\nSession id: f2a74de452e6b43{at}",
        "```\nCurrent time: 10:0{at}\n```",
        "1. Time: 10:0{at}",
        "Use the time above.\nTime: 10:0{at}",
        "Translate the last message.\nTime: 10:0{at}",
        "2026-11-30 10:0{at}:00",
    ],
)
def test_volatile_line_stays_when_it_holds_more_than_a_label_and_a_value(
    desk: Desk, line: str
) -> None:
    """Words that a model is to follow are never torn out of a system prompt."""
    rows = dated(line)
    before, _, mended = desk.fix(rows)
    assert before.findings
    assert mended == rows


def test_only_the_line_that_changes_moves_when_others_hold_numbers(desk: Desk) -> None:
    """A time goes with its heading; rules and steps that stay the same stay where they are."""
    rules = (
        "## Rules\n1. Be kind.\n2. Never reveal prices.\nStep 1: greet.\nStep 2: answer.\nTurn 7"
    )
    rows = dated(f"## Current time\n2026-11-30 10:0{{at}}:00\n\n{rules}")
    _, fixed, mended = desk.fix(rows)
    assert {row["messages"][0]["content"] for row in mended} == {system_of(EN, rules)}
    asked, note = mended[1]["messages"][1:]
    assert asked == rows[1]["messages"][1]
    assert note == {"role": "system", "content": "## Current time\n2026-11-30 10:01:00"}
    assert not fixed.after.findings


def test_time_goes_behind_the_rules_when_the_model_is_to_go_on(desk: Desk) -> None:
    """A prefill stays the end of the request; the time ends the system prompt."""
    rows = dated("Current time: 2026-11-29T10:0{at}:00Z")
    for row in rows:
        row["messages"].append({"role": "assistant", "content": '{"answer":'})
    _, fixed, mended = desk.fix(rows)
    assert [row["messages"][1:] for row in mended] == [row["messages"][1:] for row in rows]
    assert mended[3]["messages"][0]["content"] == (
        f"{system_of(EN)}\n\nCurrent time: 2026-11-29T10:03:00Z"
    )
    assert not fixed.after.findings


@pytest.mark.parametrize(
    "asked", ['{"task": "classify"}', "<mail>x</mail>", "Why?\n```\nx = 1", "Translate: cold"]
)
@pytest.mark.parametrize("role", ["user", "tool"])
def test_a_fact_is_a_message_of_its_own_when_it_moves(desk: Desk, asked: str, role: str) -> None:
    """What a user wrote or a tool returned is sent as it was, whatever is done with it."""
    rows = dated("Current time: 2026-11-29T10:0{at}:00Z")
    for row in rows:
        row["messages"].append({"role": role, "content": asked})
    _, _, mended = desk.fix(rows)
    for at, (row, after) in enumerate(zip(rows, mended, strict=True)):
        *same, note = after["messages"][1:]
        assert same == row["messages"][1:]
        assert note == {"role": "system", "content": f"Current time: 2026-11-29T10:0{at}:00Z"}


@pytest.mark.parametrize(
    "line", ["Request #10{at}", "随机种子：5434{at}", "Trace-Id: a1b2c3d4e5f{at}"]
)
def test_volatile_line_moves_when_it_is_a_label_and_a_value(desk: Desk, line: str) -> None:
    """Such a line says the same behind the question."""
    _, fixed, mended = desk.fix(dated(line))
    assert {row["messages"][0]["content"] for row in mended} == {system_of(EN)}
    assert mended[2]["messages"][2] == {"role": "system", "content": line.format(at=2)}
    assert not fixed.after.findings


def test_text_begins_with_its_first_word_when_a_line_before_it_moved(desk: Desk) -> None:
    """No empty line is left where a time stood at the start of the system prompt."""
    rules = " ".join([EN.intro, *EN.rules])
    rows = [
        chat(("system", f"It is 2026-11-29T10:0{at}:00Z.\n\n{rules}"), ("user", "Go"))
        for at in range(4)
    ]
    _, _, mended = desk.fix(rows)
    assert [row["messages"][0]["content"] for row in mended] == [rules] * 4


def spelt(a: str, b: str) -> list[Row]:
    """Write requests whose system prompts are two in turn."""
    end = system_of(EN)
    return [
        chat(("system", f"{(a, b)[at % 2]}\n{end}"), ("user", question(EN, at))) for at in range(6)
    ]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (
            "```yaml\nretries:\n  max: 3\nwait: 5\n```",
            "```yaml\nretries:\n  max: 3\n  wait: 5\n```",
        ),
        ("def count(words):\n        return words", "def count(words):\n    return words"),
        ("```\na library of books   \n```", "```\na library of books\n```"),
        ("```\nx\n\n\ny\n```", "```\nx\n\ny\n```"),
        ("A reader has  two cards at most here.", "A reader has two cards at most here."),
        ("A reader has two cards of the US at most.", "A reader has two cards of the us at most."),
    ],
    ids=["yaml", "indent", "fence", "fenced-blank-lines", "inner", "case"],
)
def test_spaces_stay_when_they_may_have_a_meaning(desk: Desk, a: str, b: str) -> None:
    """Indentation, spaces within a line, code, and letters are left to their author."""
    rows = spelt(a, b)
    before, _, mended = desk.fix(rows)
    assert before.findings
    assert mended == rows


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("A reader has two cards at most here.", "A reader has two cards at most here.  "),
        ("A reader has two cards at most here.", "A reader has two cards at most here.\r"),
        ("One card each.\n\nTwo at most.", "One card each.\n\n\nTwo at most."),
        ("Un caf\u00e9 pour chaque lecteur ici.", "Un cafe\u0301 pour chaque lecteur ici."),
    ],
    ids=["trailing", "line-end", "blank-lines", "composed"],
)
def test_ends_of_lines_are_made_alike_when_they_differ(desk: Desk, a: str, b: str) -> None:
    """What nobody reads is written as it was first."""
    rows = spelt(a, b)
    _, fixed, mended = desk.fix(rows)
    assert {row["messages"][0]["content"] for row in mended} == {rows[0]["messages"][0]["content"]}
    assert not fixed.after.findings
