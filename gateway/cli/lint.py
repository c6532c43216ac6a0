"""``strata lint``: what in a log of requests splits the prefixes that a cache could share."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import click
import msgspec

from gateway.bundled import CHAT, prepare_model
from gateway.cli.options import config_option, settings_of
from gateway.cli.progress import Progress, narrated
from gateway.engine_config import local_model_folder
from gateway.hub import find_model
from gateway.lint import Cache, Finding, LogReader, Report, as_sarif
from gateway.settings import Settings

TELL_EVERY_S = 2.0
DEFAULT_BLOCKS = 1 << 17
FAULTS, BAD_ROWS = 1, 2


@click.command("lint")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@config_option
@click.option("--model", help="Folder or name of the model whose tokenizer and template count.")
@click.option("--block-size", type=click.IntRange(1, 512), help="Of the cache that is predicted.")
@click.option(
    "--kv-tokens",
    type=click.IntRange(min=1),
    help="Tokens that the predicted cache holds.  [default: 131,072 blocks]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def lint(
    files: tuple[str, ...],
    config: Path | None,
    model: str | None,
    block_size: int | None,
    kv_tokens: int | None,
    form: str,
    *,
    as_json: bool,
) -> None:
    """Find what splits shared prefixes in the requests of FILE (- for standard input).

    Each line is an OpenAI or Anthropic request, {"request": …} as `strata export` writes it, a line
    of a batch file, or a LangChain run. The exit code is 1 when there is a fault, else 2 when a
    line is no request.
    """
    settings = settings_of(config)
    block_size = block_size or settings.local.block_size
    num_blocks = max(1, kv_tokens // block_size) if kv_tokens else DEFAULT_BLOCKS
    with narrated() as tell:
        cache = Cache(_model_folder(settings, model, tell), block_size, num_blocks)
        with closing(LogReader(cache, _told(tell))) as reader:
            for file in files:
                reader.read(file, _lines(file))
            report = reader.report()
    _show(report, "json" if as_json else form)
    if report.findings or report.bad:
        raise SystemExit(FAULTS if report.findings else BAD_ROWS)


def _told(tell: Progress) -> Callable[[int], None]:
    """Tell the number of rows every other second."""
    begin_s = time.monotonic()
    last_s = begin_s

    def told(num_rows: int) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s > TELL_EVERY_S:
            last_s = now_s
            tell(f"{num_rows:,} rows, {num_rows / (now_s - begin_s):,.0f} a second")

    return told


def _model_folder(settings: Settings, model: str | None, tell: Progress) -> Path:
    if model is not None and model != "bundled":
        return find_model(model)
    if model is None and settings.local.model not in ("none", "bundled"):
        return local_model_folder(settings)
    assert settings.models_dir is not None, "load_settings fills it in"
    prepare_model(CHAT, settings.models_dir, tell)
    return settings.models_dir / CHAT.model_id


def _lines(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as lines:
            yield from lines
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from None


def _show(report: Report, form: str) -> None:
    if form == "json":
        click.echo(msgspec.json.encode(report))
    elif form == "sarif":
        click.echo(json.dumps(as_sarif(report, version("strata-gateway")), ensure_ascii=False))
    else:
        click.echo("\n".join(_text(report)))


def _text(report: Report) -> Iterable[str]:
    for bad in report.bad:
        yield f"{bad.file}:{bad.line}: {bad.message}"
    for finding in report.findings:
        yield from _finding(finding)
    share = f"hit share {report.hit_share:.1%}"
    if report.findings:
        share += f", {report.reachable_share:.1%} without the faults above"
    count = len(report.findings)
    found = f"{count} fault{'s' if count > 1 else ''}" if count else "no faults"
    yield f"{report.requests:,} requests, {report.prompt_tokens:,} tokens: {found}; {share}"


def _finding(finding: Finding) -> Iterable[str]:
    at = finding.position
    name = f" ({finding.name})" if finding.name else ""
    token = "" if at.token is None else f", token {at.token}"
    yield f"{at.file}:{at.line}: {at.field} char {at.char}{token}: {finding.cause}{name}"
    yield f"  {finding.detail}; met first at {finding.seen}"
    cost = f"{finding.requests:,} requests, {finding.lost_per_1000:,} tokens per 1,000 requests"
    yield f"  costs: {cost}"
    yield f"  mend: {finding.mend}"
