"""One fault is one finding, named by its label, and its estimate stays within what can be."""

import json
import random
from pathlib import Path

import pytest

from gateway.backends.tokenizer import Tokenizer
from gateway.lint import Cache, LogReader, PromptTokens
from gateway.lint.finding import Finding, Findings, Position, Site
from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import Row, chat
from tests.gateway.lint.texts import EN

RULES = "\n".join((EN.intro, *EN.rules))
BLOCK_SIZE = 512


def headed(lines: list[str]) -> list[Row]:
    asked = [EN.questions[at % len(EN.questions)] for at in range(len(lines))]
    return [
        chat(("system", f"{line}\n{RULES}"), ("user", question))
        for line, question in zip(lines, asked, strict=True)
    ]


@pytest.mark.parametrize(
    ("label", "name"), [("Seed", "random seed"), ("Session", "session id"), ("种子", "random seed")]
)
def test_number_is_no_time_when_its_label_says_so(lint: Lint, label: str, name: str) -> None:
    """Some numbers of 32 bits could be seconds since 1970; all of them are one fault."""
    rng = random.Random(3)
    epochs = [rng.randrange(1_400_000_000, 1_800_000_000) for _ in range(8)]
    values = [value for epoch in epochs for value in (epoch, rng.getrandbits(32))]
    (found,) = lint(headed([f"{label}: {value}" for value in values])).findings
    assert found.cause in ("number", "identifier")
    assert found.name == name


@pytest.mark.parametrize("label", ["Request time", "Now", "Session started at time"])
def test_seconds_are_a_time_when_the_label_is_one(lint: Lint, label: str) -> None:
    """A word for time beside another label decides."""
    values = [1_767_225_600 + 61 * at for at in range(8)]
    (found,) = lint(headed([f"{label}: {value}" for value in values])).findings
    assert found.cause == "timestamp"


def test_time_is_one_fault_when_what_stands_before_it_grows(lint: Lint) -> None:
    """A day of one or two digits moves the time by a character, which makes no other fault."""
    lines = [
        f"Сегодня {at} марта 2026 года, время {8 + at % 9:02}:{at * 2 % 60:02}."
        for at in range(1, 28)
    ]
    report = lint(headed(lines))
    assert [finding.cause for finding in report.findings] == ["timestamp"]
    plain = lint([chat(("system", RULES), *_said(row)) for row in headed(lines)])
    assert report.reachable_share <= plain.hit_share + 0.02


def test_finding_is_left_out_when_it_costs_nothing() -> None:
    """A counter in a user's own words, behind which nothing was lost, is not worth a word."""
    findings = Findings()
    for label, lost_chars in (("Question ", 3), ("Seed: ", 3000)):
        found = Finding(
            cause="number", name="", detail="", mend="", role="user", label=label,
            position=Position("log", 1, "messages[1].content", 1, 31, 138), seen="log:1",
            requests=1, num_measured=1, lost_chars=lost_chars, measured_chars=4,
            measured_tokens=1, own_tokens=1,
        )  # fmt: skip
        findings.add(Site("number", "user", label), found)
    assert [finding.label for finding in findings.ranked(10)] == ["Seed: "]


def test_estimate_is_no_less_than_the_present_share_when_blocks_are_long(
    bundled_chat_model: Path,
) -> None:
    """A prompt that is shorter than a block can't be found, with or without a fault."""
    tokens = PromptTokens(Tokenizer(bundled_chat_model))
    cache = Cache(bundled_chat_model, BLOCK_SIZE, num_blocks=4096)
    reader = LogReader(cache, lambda _: None, tokens)
    lines = [f"Now: 2026-11-30T10:{at:02}:00" for at in range(20)]
    reader.read("log", [json.dumps(row).encode() for row in headed(lines)])
    report = reader.report()
    assert report.findings
    assert report.hit_share <= report.reachable_share <= 1


def _said(row: Row) -> list[tuple[str, str]]:
    return [(said["role"], said["content"]) for said in row["messages"][1:]]
