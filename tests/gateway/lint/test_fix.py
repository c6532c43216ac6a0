"""The mended copy shares more, says the same, and leaves alone what needs its author."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gateway.lint import Cache, Fix, PromptTokens, Report, fix_file, lint_file
from tests.gateway.lint.logs import Log, chat, clean_logs, faulty_logs, system_of
from tests.gateway.lint.texts import EN

LEFT = ("edited_history",)
FAULTY = {name: log for name, log in faulty_logs() if name[:2] in ("en", "zh", "de")}


class Desk:
    """Lints and mends rows in a folder."""

    def __init__(self, folder: Path, model: Path, tokens: PromptTokens) -> None:
        self._folder = folder
        self._cache = Cache(model, block_size=16, num_blocks=4096)
        self._tokens = tokens

    def fix(self, rows: list[dict[str, Any]]) -> tuple[Report, Fix, list[dict[str, Any]]]:
        source, output = self._folder / "log.jsonl", self._folder / "mended.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        before = lint_file(self._cache, source, "log", lambda _: None, self._tokens)
        fixed = fix_file(self._cache, source, output, before, lambda _: None, self._tokens)
        return before, fixed, [json.loads(line) for line in output.read_text().splitlines()]


@pytest.fixture
def desk(tmp_path: Path, bundled_chat_model: Path, tokens: PromptTokens) -> Desk:
    return Desk(tmp_path, bundled_chat_model, tokens)


def words(row: dict[str, Any]) -> Counter[str]:
    text = json.dumps(row, ensure_ascii=False, sort_keys=True)
    return Counter(char for char in text.replace("\\n", "") if char.isalnum())


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
    if log.cause != "unicode_form":
        assert list(map(words, rows)) == list(map(words, log.rows))


@pytest.mark.parametrize("name", [name for name, log in FAULTY.items() if log.cause in LEFT])
def test_nothing_is_changed_when_the_mend_needs_an_author(desk: Desk, name: str) -> None:
    """A rewritten conversation stays as it is, and is still reported."""
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


def test_ranks_are_written_anew_when_numbered_chunks_move(desk: Desk) -> None:
    """The number in front of a chunk is that of its place, as before."""
    orders = [(0, 1, 2, 3), (2, 0, 3, 1), (3, 1, 0, 2), (1, 3, 2, 0), (2, 3, 0, 1)]
    rows = [
        chat(
            ("system", system_of(EN)),
            ("user", "\n\n".join([*(f"[{n}] {EN.chunks[i]}" for n, i in enumerate(o, 1)), "Why?"])),
        )
        for o in orders
    ]
    _, fixed, mended = desk.fix(rows)
    texts = {row["messages"][1]["content"] for row in mended}
    assert len(texts) == 1
    assert texts.pop().startswith("[1] ")
    assert not fixed.after.findings


def test_volatile_line_goes_behind_tool_results_when_an_agent_asks(desk: Desk) -> None:
    """A time in an agent's system prompt becomes a last message of its own."""
    rows = []
    for at in range(4):
        said = [
            ("system", system_of(EN, f"Current time: 2026-11-29T10:0{at}:00Z", 1)),
            ("user", "Go"),
        ]
        said += [
            ("assistant", f"step {n}") if n % 2 else ("user", f"seen {n}") for n in range(1, at)
        ]
        rows.append(chat(*said))
    rows[-1]["messages"].append({"role": "tool", "tool_call_id": "c", "content": "done"})
    _, fixed, mended = desk.fix(rows)
    assert mended[-1]["messages"][-1] == {
        "role": "user",
        "content": "Current time: 2026-11-29T10:03:00Z",
    }
    assert not any("2026" in row["messages"][0]["content"] for row in mended)
    assert not [f for f in fixed.after.findings if f.cause == "timestamp"]
