"""``strata warm``: prompts of a file computed ahead of use in a running gateway."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from gateway.cli.admin_client import AdminClient
from gateway.cli.errors import AdminApiError
from gateway.cli.options import config_option, json_option, settings_of, url_option
from gateway.cli.progress import reading
from gateway.cli.rows import BadRow, Line, Row, name_of, parse_lines

BATCH_ROWS = 8  # prompts that are computed before progress moves
_DONE = {None: "warmed", True: "warmed and pinned", False: "unpinned"}


class WarmUp:
    """Sends prompts batch by batch and keeps count."""

    def __init__(self, client: AdminClient, how: Row) -> None:
        self._client = client
        self._how = how
        self.warmed = 0
        self.tokens = {"computed": 0, "cached": 0}
        self.bad: list[BadRow] = []

    def run(self, lines: Iterator[Line | BadRow]) -> None:
        """Send all rows; what is wrong with one never stops the others."""
        batch: list[Line] = []
        for line in lines:
            if isinstance(line, BadRow):
                self.bad.append(line)
                continue
            batch.append(line)
            if len(batch) == BATCH_ROWS:
                self._send(batch)
                batch = []
        if batch:
            self._send(batch)

    def _send(self, batch: list[Line]) -> None:
        rows = [line.row.get("request", line.row) for line in batch]
        result = self._client.warm(rows, self._how)
        self.warmed += result["warmed"]
        for source in self.tokens:
            self.tokens[source] += result[f"{source}_tokens"]
        for error in result["errors"]:
            at, message = error["index"], error["message"]
            said = message.removeprefix(f"requests[{at}].")
            self.bad.append(BadRow(batch[at].number, said))


@click.command("warm")
@click.argument("file", type=click.File("rb"))
@config_option
@url_option
@click.option("--pin/--unpin", default=None, help="Keep the prompts cached, or no longer.")
@click.option("--public", is_flag=True, help="Share the prompts between all tenants.")
@click.option("--tenant", help="Whose prompts they are.  [default: public]")
@json_option
def warm(
    file: BinaryIO,
    config: Path | None,
    url: str | None,
    *,
    pin: bool | None,
    public: bool,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Compute the prompts of FILE (- for standard input) in a running gateway's prefix cache.

    Each line is a chat request, or {"request": …}. Only what is not cached is computed. Good rows
    count whatever is wrong with others; any bad row makes the exit code 1.
    """
    said = {"pin": pin, "public": public or None, "tenant": tenant}
    how = {name: value for name, value in said.items() if value is not None}
    with AdminClient(settings_of(config), url) as client, reading(file, "warming") as lines:
        work = WarmUp(client, how)
        try:
            work.run(parse_lines(lines, name_of(file)))
        except AdminApiError as error:
            raise AdminApiError(f"after {work.warmed} rows: {error}") from error
    _report(work, _DONE[pin], as_json=as_json)


def _report(work: WarmUp, done: str, *, as_json: bool) -> None:
    bad = sorted(work.bad, key=lambda row: row.number)
    tokens = work.tokens
    if as_json:
        rows = [{"line": row.number, "message": row.message} for row in bad]
        told = {"warmed": work.warmed, "tokens": tokens, "bad": rows}
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        for row in bad:
            click.echo(f"line {row.number}: {row.message}", err=True)
        counts = f"{tokens['computed']} tokens computed, {tokens['cached']} were cached"
        click.echo(f"{done} {work.warmed} prompts ({counts}), {len(bad)} bad", err=True)
    if bad:
        raise SystemExit(1)
