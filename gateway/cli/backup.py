"""``strata backup`` and ``strata restore``: all that a gateway's caches hold and have learnt."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import click

from gateway.cli.admin_client import AdminClient
from gateway.cli.backup_file import batches, checked, lines_of, new_file, opened
from gateway.cli.options import config_option, json_option, settings_of, url_option
from gateway.cli.progress import narrated
from gateway.evidence import JournalRow

_STEP = 1000  # lines between two progress lines


def _writing(lines: Iterable[bytes], out: IO[bytes]) -> Iterator[bytes]:
    for line in lines:
        out.write(line)
        yield line


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--requests", is_flag=True, help="Recorded requests too.")
@config_option
@url_option
@json_option
def back_up(
    file: Path, config: Path | None, url: str | None, *, requests: bool, as_json: bool
) -> None:
    """Write a running gateway's caches, and what it has learnt, to FILE (zipped if it ends in .gz).

    Entries with their age and the time they have left; policies of intents and their history,
    labels, rejected pairs, experiments. FILE holds plain text whatever the gateway encrypts, is
    for its owner alone, and takes its name only when it is whole.
    """
    num: Counter[str] = Counter(entries=0, rows=0)
    with (
        AdminClient(settings_of(config), url) as client,
        narrated() as tell,
        client.backup(with_requests=requests) as chunks,
        new_file(file) as out,
    ):
        for number, _, content in checked(_writing(lines_of(chunks), out), client.url):
            num["rows" if isinstance(content, JournalRow) else "entries"] += 1
            if number % _STEP == 0:
                tell(f"{number} lines")
    text = f"backed up {num['entries']} entries, {num['rows']} rows of what was learnt"
    click.echo(json.dumps(num) if as_json else text, err=not as_json)


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--check", is_flag=True, help="Only check FILE; no gateway is asked.")
@config_option
@url_option
@json_option
def restore(
    file: Path, config: Path | None, url: str | None, *, check: bool, as_json: bool
) -> None:
    """Put a backup FILE into a running gateway.

    The whole file is checked first; where a line is wrong it is named and nothing is changed. What
    the gateway already has stays, so restoring twice is harmless. Vectors are made anew by the
    gateway's own embedder.
    """
    with opened(file) as lines:
        num_lines = sum(1 for _ in checked(lines, str(file)))
        if check:
            text = f"{file}: whole, {num_lines} lines"
            click.echo(json.dumps({"lines": num_lines}) if as_json else text, err=not as_json)
            return
        lines.seek(0)
        num: Counter[str] = Counter()
        with AdminClient(settings_of(config), url) as client, narrated() as tell:
            for batch in batches(checked(lines, str(file))):
                num.update(client.restore(batch))
                tell(f"{sum(num.values())} of {num_lines} lines")
    text = (
        f"restored {num['entries']} entries, {num['rows']} rows of what was learnt; "
        f"{num['kept']} were there, {num['expired']} had expired"
    )
    click.echo(json.dumps(num) if as_json else text, err=not as_json)
