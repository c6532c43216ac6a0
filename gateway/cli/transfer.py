"""``strata import`` and ``strata export``: cache entries of a running gateway as JSON lines."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from gateway.cli.admin_client import AdminClient
from gateway.cli.errors import AdminApiError
from gateway.cli.options import config_option, json_option, settings_of, url_option
from gateway.cli.progress import Progress, narrated, reading
from gateway.cli.rows import BadRow, Line, NotExported, Row, batches, exported, name_of, parse_lines

EXPORT_STEP = 1000  # entries between two progress lines


class Import:
    """Sends rows batch by batch and keeps count."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self.imported = 0
        self.bad: list[BadRow] = []

    def run(self, lines: Iterator[Line | BadRow]) -> None:
        """Send all rows; what is wrong with one never stops the others."""
        for batch in batches(self._good(lines)):
            result = self._client.import_rows([line.row for line in batch])
            self.imported += result["imported"]
            self.bad += [
                BadRow(batch[error["index"]].number, error["message"]) for error in result["errors"]
            ]

    def _good(self, lines: Iterator[Line | BadRow]) -> Iterator[Line]:
        for line in lines:
            if isinstance(line, Line):
                yield line
            else:
                self.bad.append(line)


@click.command("import")
@click.argument("file", type=click.File("rb"))
@config_option
@url_option
@json_option
def import_entries(file: BinaryIO, config: Path | None, url: str | None, *, as_json: bool) -> None:
    """Store answers from FILE (- for standard input) in a running gateway's cache.

    Each line is {"request": …, "response": … or "text": …} and optionally ttl, tags, namespace
    and tenant. Good rows are kept whatever is wrong with others; any bad row makes the exit code 1.
    """
    with AdminClient(settings_of(config), url) as client, reading(file, "importing") as lines:
        work = Import(client)
        try:
            work.run(parse_lines(lines, name_of(file)))
        except AdminApiError as error:
            raise AdminApiError(f"after {work.imported} rows: {error}") from error
    _report(work, as_json=as_json)


@click.command("export")
@click.argument("file", type=click.File("wb", atomic=True))
@config_option
@url_option
@click.option("--tenant", help="Only entries of this tenant.")
@click.option("--namespace", help="Only entries of this namespace.")
@click.option("--model", help="Only entries of this model.")
@click.option("--intent", help="Only entries of this intent.")
@click.option("--tag", help="Only entries with this tag.")
@json_option
def export_entries(
    file: BinaryIO,
    config: Path | None,
    url: str | None,
    *,
    as_json: bool,
    **selection: str | None,
) -> None:
    """Write a running gateway's cache entries to FILE (- for standard output).

    The lines are as `strata import` reads them; each keeps the time it has left. What no import
    takes is skipped: standard error says how many entries, and why.
    """
    chosen = {name: value for name, value in selection.items() if value is not None}
    with AdminClient(settings_of(config), url) as client, narrated() as tell:
        written, skipped = _export(client.entries(chosen), file, tell)
    if as_json:
        counts = {"exported": written, "skipped": skipped.total(), "why": dict(skipped)}
        click.echo(json.dumps(counts), err=True)
        return
    click.echo(f"exported {written} entries, skipped {skipped.total()}", err=True)
    for why, count in skipped.most_common():
        click.echo(f"skipped {count}: {why}", err=True)


def _export(entries: Iterator[Row], file: BinaryIO, tell: Progress) -> tuple[int, Counter[str]]:
    """Write what can be imported; return how many rows, and how many others by what they lack."""
    written, skipped = 0, Counter[str]()
    for entry in entries:
        try:
            row = exported(entry, time.time())
        except NotExported as error:
            skipped[str(error)] += 1
            continue
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        written += 1
        if written % EXPORT_STEP == 0:
            tell(f"{written} entries")
    return written, skipped


def _report(work: Import, *, as_json: bool) -> None:
    bad = sorted(work.bad, key=lambda row: row.number)
    if as_json:
        rows = [{"line": row.number, "message": row.message} for row in bad]
        click.echo(json.dumps({"imported": work.imported, "bad": rows}, ensure_ascii=False))
    else:
        for row in bad:
            click.echo(f"line {row.number}: {row.message}", err=True)
        click.echo(f"imported {work.imported} rows, {len(bad)} bad", err=True)
    if bad:
        raise SystemExit(1)
