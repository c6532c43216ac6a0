"""``strata doctor``: a gateway's findings as a table, as JSON, and as an exit code."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import strata
from tests.fakes.admin import FakeAdminApi, serving


def finding(severity: str, **more: str) -> dict[str, str]:
    mend = "" if severity == "ok" else "turn it off"
    said = {
        "check": "stores",
        "title": f"a title of {severity}",
        "evidence": "3 of 4",
        "mend": mend,
    }
    return {**said, "severity": severity, **more}


def run(*arguments: str, findings: list[dict[str, str]], key: str | None = None) -> Result:
    with serving(FakeAdminApi(key)) as api:
        api.report = {"checked_at": 1.0, "took_s": 0.25, "requests": 7, "findings": findings}
        return CliRunner().invoke(strata, ["doctor", api.url, *arguments])


@pytest.mark.parametrize(
    ("severities", "code", "strict_code"),
    [
        (["ok"], 0, 0),
        (["notice", "ok"], 0, 0),
        (["warning", "notice"], 0, 1),
        (["error", "warning"], 2, 2),
    ],
)
def test_exit_code_follows_the_worst_finding(
    severities: list[str], code: int, strict_code: int
) -> None:
    """Errors count always, warnings with --strict only."""
    findings = [finding(severity) for severity in severities]
    assert run(findings=findings).exit_code == code
    assert run("--strict", findings=findings).exit_code == strict_code


def test_table_has_everything_when_printed() -> None:
    """Title, evidence and mend of each finding, and the sum of them."""
    shown = run(findings=[finding("warning"), finding("ok")]).stdout
    for words in (
        "a title of warning",
        "3 of 4",
        "turn it off",
        "1 warning",
        "7 recorded requests",
    ):
        assert words in shown


def test_report_is_as_the_gateway_gave_it_when_json_is_asked_for() -> None:
    """Nothing added, nothing left out."""
    findings = [finding("notice", evidence="“ä” 好")]
    report: dict[str, Any] = json.loads(run("--json", findings=findings).stdout)
    assert report["findings"] == findings


def test_markup_and_escapes_are_plain_when_prompts_hold_them() -> None:
    """Evidence quotes users' words, which must not steer the terminal."""
    shown = run(findings=[finding("notice", evidence="[bold]x[/bold] \x1b[31mred\x07")]).stdout
    assert "[bold]x[/bold]" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_one_line_and_exit_code_2_when_no_gateway_answers() -> None:
    """So that a check in CI tells it from warnings."""
    result = CliRunner().invoke(strata, ["doctor", "http://127.0.0.1:9"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "http://127.0.0.1:9" in result.stderr


def test_refusal_is_told_when_the_admin_key_is_wrong() -> None:
    """In the gateway's own words."""
    result = run(findings=[], key="secret")
    assert result.exit_code == 2
    assert "admin key" in result.stderr


def test_two_addresses_are_a_usage_error() -> None:
    """Rather than one of them silently ignored."""
    result = CliRunner().invoke(strata, ["doctor", "http://a", "--url", "http://b"])
    assert result.exit_code == 2
    assert "once" in result.stderr
