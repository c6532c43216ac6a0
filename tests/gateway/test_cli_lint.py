"""``strata lint`` on files and standard input: what it prints and how it exits."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import strata

RULES = "Be brief, be kind, cite your sources and never guess at numbers. Ask back when in doubt."
ASKED = ("Where is the exit?", "How late is it?", "Who are you?")


def body(at: int, line: str = "") -> dict[str, Any]:
    system = f"You help visitors.\n{line}\n{RULES}" if line else f"You help visitors.\n{RULES}"
    said = [{"role": "system", "content": system}, {"role": "user", "content": ASKED[at % 3]}]
    return {"model": "m", "messages": said}


CLEAN = [body(at) for at in range(3)]
TIMED = [body(at, f"Now: 2026-11-29T10:00:0{at}Z") for at in range(3)]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def run(bundled_chat_model: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("STRATA_MODELS_DIR", str(bundled_chat_model.parent))

    def call(*args: str, given: str | None = None) -> Result:
        return CliRunner().invoke(strata, ["lint", *args], input=given)

    return call


def test_exit_is_zero_when_a_log_is_clean(run: Any) -> None:
    """A clean log is said to be clean, with its hit share."""
    result = run("-", given=lines(CLEAN))
    assert result.exit_code == 0, result.output
    assert "3 requests" in result.stdout
    assert "no faults; hit share" in result.stdout


def test_exit_is_one_and_place_is_told_when_a_log_has_a_fault(run: Any, tmp_path: Path) -> None:
    """The text names file, line, field, character, token, cost and mend."""
    file = tmp_path / "log.jsonl"
    file.write_text(lines(TIMED))
    result = run(str(file))
    assert result.exit_code == 1
    assert f"{file}:2: messages[0].content char 24, token " in result.stdout
    assert "timestamp" in result.stdout
    assert "tokens per 1,000 requests" in result.stdout
    assert "mend: move the line" in result.stdout


def test_json_holds_the_same_when_asked(run: Any) -> None:
    """JSON has counts, shares, and the findings with their positions."""
    report = json.loads(run("--json", "-", given=lines(TIMED)).stdout)
    assert report["requests"] == 3
    assert report["hit_share"] < report["reachable_share"]
    (finding,) = report["findings"]
    assert finding["cause"] == "timestamp"
    assert finding["requests"] == 2
    assert finding["position"]["message"] == 0
    assert finding["position"]["char"] == 24


def test_exit_is_two_and_line_is_named_when_a_row_is_no_request(run: Any) -> None:
    """A bad line is told with its number; the others count."""
    result = run("-", given=lines(CLEAN) + "nonsense\n" + lines([{"a": 1}]))
    assert result.exit_code == 2
    assert "-:4: not JSON" in result.stdout
    assert "-:5: messages must be a list" in result.stdout
    assert "3 requests" in result.stdout


def test_one_clear_line_is_shown_when_a_file_is_missing(run: Any) -> None:
    """A missing file is told by its name."""
    result = run("/nowhere/log.jsonl")
    assert result.exit_code == 2
    assert "/nowhere/log.jsonl: No such file" in result.stderr


def test_mended_copy_is_packed_when_the_log_is(run: Any, tmp_path: Path) -> None:
    """A gzip log is read as it is, and its mended copy lies beside it, packed too."""
    file = tmp_path / "log.jsonl.gz"
    file.write_bytes(gzip.compress(lines(TIMED).encode()))
    assert run(str(file)).exit_code == 1
    result = run("--fix", str(file))
    assert result.exit_code == 0, result.output
    mended = gzip.decompress((tmp_path / "log.mended.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(line)["messages"][0]["content"] for line in mended] == [
        f"You help visitors.\n{RULES}"
    ] * 3


def test_packed_log_is_read_when_it_comes_on_standard_input(run: Any) -> None:
    """What is packed is told by its first bytes, not by a name."""
    result = run("--json", "-", given=gzip.compress(lines(CLEAN).encode()))
    assert json.loads(result.stdout)["requests"] == 3


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--model", "nope", "-"), "--model"),
        (("--model", "/", "-"), "no usable tokenizer"),
        (("--json", "--format", "sarif", "-"), "--json"),
        (("--fix", "--output", "/nowhere/mended.jsonl", "-"), "--output /nowhere/mended.jsonl"),
        (("--kv-tokens", "0", "-"), "--kv-tokens"),
    ],
    ids=["no model", "no tokenizer", "two formats", "no folder", "no cache"],
)
def test_exit_is_two_and_option_is_named_when_it_is_wrong(
    run: Any, args: tuple[str, ...], told: str
) -> None:
    """A wrong option is told by its name, before the log is read."""
    result = run(*args, given=lines(TIMED))
    assert result.exit_code == 2
    assert told in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("given", ["", "\n\n"], ids=["empty", "blank"])
def test_exit_is_two_when_a_log_holds_no_request(run: Any, given: str) -> None:
    """An empty log is no clean one."""
    result = run("-", given=given)
    assert result.exit_code == 2
    assert "no request in -" in result.stderr
