"""``strata doctor``: what ails a running gateway, or could be better, and what mends it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.admin_client import AdminClient
from gateway.cli.errors import AdminApiError
from gateway.cli.options import config_option, json_option, settings_of, url_option

STYLES = {"error": "bold red", "warning": "yellow", "notice": "cyan", "ok": "green"}
_WIDE = 100  # columns where nothing tells how many there are

Row = dict[str, Any]


class NoReport(click.ClickException):
    """No gateway could be examined."""

    exit_code = 2


@click.command("doctor")
@click.argument("address", metavar="[URL]", required=False)
@config_option
@url_option
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
@json_option
def doctor(
    address: str | None, config: Path | None, url: str | None, *, strict: bool, as_json: bool
) -> None:
    """Examine a running gateway, its settings and its recorded traffic; nothing is changed.

    Each finding has its evidence and the setting or change of prompts that mends it. The exit code
    is 0, 1 with --strict where there are warnings, and 2 where there are errors or no gateway
    answers.
    """
    if address and url:
        raise click.UsageError("name the gateway once, as URL or by --url")
    try:
        with AdminClient(settings_of(config), address or url) as client:
            report = client.doctor()
    except AdminApiError as error:
        raise NoReport(str(error)) from error
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        _print(report)
    raise SystemExit(_exit_code(report["findings"], strict=strict))


def _exit_code(findings: Sequence[Row], *, strict: bool) -> int:
    found = {finding["severity"] for finding in findings}
    if "error" in found:
        return 2
    return 1 if strict and "warning" in found else 0


def _print(report: Row) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _WIDE)
    console.print(_table(report["findings"]))
    at = datetime.fromtimestamp(report["checked_at"], UTC)
    took = f"{report['requests']} recorded requests read in {report['took_s']:.2f} s"
    console.print(
        f"{_summary(report['findings'])}; {took}, {at:%Y-%m-%d %H:%M:%S} UTC", highlight=False
    )


def _table(findings: Sequence[Row]) -> Table:
    table = Table(show_lines=True, expand=False)
    for column in ("", "finding", "what mends it"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        severity, title = finding["severity"], _plain(finding["title"])
        said = Text.assemble((title, "bold"), "\n", _plain(finding["evidence"]))
        table.add_row(
            Text(severity, STYLES.get(severity, "")), said, Text(_plain(finding["mend"]) or "–")
        )
    return table


def _summary(findings: Sequence[Row]) -> str:
    counts = {name: sum(f["severity"] == name for f in findings) for name in STYLES}
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _plain(text: str) -> str:
    """Return a text that steers no terminal: prompts are quoted in evidence."""
    return "".join(char if char.isprintable() else "�" for char in text)
