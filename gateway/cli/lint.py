"""``strata lint``: what in a log of requests splits the prefixes that a cache could share."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path

import click
import msgspec

from gateway.backends.tokenizer import Tokenizer
from gateway.bundled import CHAT, prepare_model
from gateway.cli.options import config_option, settings_of
from gateway.cli.progress import Progress, narrated
from gateway.engine_config import local_model_folder
from gateway.errors import BackendUnavailable
from gateway.hub import ModelNotHere, find_model
from gateway.lint import (
    Cache,
    Finding,
    Fix,
    LogReader,
    PromptTokens,
    Report,
    as_sarif,
    fix_file,
    lint_file,
    plain_lines,
)
from gateway.settings import Settings

TELL_EVERY_S = 2.0
DEFAULT_KV_TOKENS = 1 << 21
FAULTS, BAD_ROWS = 1, 2
STDIN = "-"


@click.command("lint")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@config_option
@click.option("--model", help="Folder or name of the model whose tokenizer and template count.")
@click.option("--block-size", type=click.IntRange(1, 512), help="Of the cache that is predicted.")
@click.option(
    "--kv-tokens",
    type=click.IntRange(min=1),
    default=DEFAULT_KV_TOKENS,
    show_default=f"{DEFAULT_KV_TOKENS:,}",
    help="Tokens that the predicted cache holds.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Write a mended copy and show what it is worth. Does only what is provably harmless: one "
    "order of tools, JSON keys and whole unlabelled passages, lines of a value and its label as a "
    "system message behind the message they came with, line ends made alike; never what would "
    "lower the hit share. The rest is left to its author.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The mended copy.  [default: FILE with .mended before its suffix]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    help="How to print the report.  [default: text]",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def lint(
    files: tuple[str, ...],
    config: Path | None,
    model: str | None,
    block_size: int | None,
    kv_tokens: int,
    output: Path | None,
    form: str | None,
    *,
    fix: bool,
    as_json: bool,
) -> None:
    """Find what splits shared prefixes in the requests of FILE (- for standard input).

    Each line is a request of OpenAI's (chat, completions, Responses) or Anthropic's API,
    {"request": …} as `strata export` writes it, a line of a batch file, or a LangChain run; gzip is
    unpacked. The exit code is 1 when there is a fault (with --fix: when one is left), else 2 when a
    line is no request, or none is.

    The hit share is replayed. What it would be without the faults is estimated, within some three
    points; from what is found now to what a larger cache would find, where --kv-tokens are few. The
    mended copy of --fix is replayed.
    """
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json is --format json: it does not go with --format {form}")
    _check_places(files, output, fix=fix)
    settings = settings_of(config)
    block_size = block_size or settings.local.block_size
    num_blocks = max(1, kv_tokens // block_size)
    with narrated() as tell:
        cache = Cache(_model_folder(settings, model, tell), block_size, num_blocks)
        if fix:
            report, fixed = _fix(cache, files[0], output, _told(tell))
        else:
            report, fixed = _lint(cache, files, _told(tell)), None
    if report.requests or as_json or form in ("json", "sarif"):
        _show(report, fixed, "json" if as_json else form or "text")
    left = report if fixed is None else fixed.after
    if not report.requests:
        bad = [f"{row.file}:{row.line}: {row.message}" for row in report.bad[:1]]
        click.echo("; ".join([f"Error: no request in {', '.join(files)}", *bad]), err=True)
    if left.findings or report.bad or not report.requests:
        raise SystemExit(FAULTS if left.findings else BAD_ROWS)


def _check_places(files: tuple[str, ...], output: Path | None, *, fix: bool) -> None:
    """Refuse what could not be written, before the log is read.

    Raises:
        click.UsageError: with one clear line.
    """
    if fix and (len(files) > 1 or (files[0] == STDIN and output is None)):
        raise click.UsageError("--fix takes one FILE, and --output where that is -")
    if output is None:
        return
    if output.resolve() == Path(files[0]).resolve():
        raise click.UsageError("--output is the log itself, which --fix leaves as it is")
    if not fix:
        raise click.UsageError("--output is where --fix writes")
    if not output.parent.is_dir():
        raise click.UsageError(f"--output {output}: there is no folder {output.parent}")
    if not os.access(output.parent, os.W_OK):
        raise click.UsageError(f"--output {output}: the folder cannot be written to")


def _lint(cache: Cache, files: Iterable[str], told: Callable[[int], None]) -> Report:
    with closing(LogReader(cache, told)) as reader:
        for file in files:
            reader.read(file, _lines(file))
        return reader.report()


def _fix(
    cache: Cache, file: str, output: Path | None, told: Callable[[int], None]
) -> tuple[Report, Fix | None]:
    tokens = PromptTokens(Tokenizer(cache.model_path))
    with _on_disk(file) as source:
        written = output or _beside(source)
        try:
            report = lint_file(cache, source, file, told, tokens)
            if not report.requests:
                return report, None
            return report, fix_file(cache, source, written, report, told, tokens)
        except OSError as error:
            raise click.UsageError(f"{error.filename}: {error.strerror}") from None


def _beside(source: Path) -> Path:
    """Put ``mended`` before the suffix, and before ``.gz`` behind it."""
    packed = ".gz" if source.suffix == ".gz" else ""
    plain = Path(source.name.removesuffix(packed))
    return source.with_name(f"{plain.stem}.mended{plain.suffix}{packed}")


@contextmanager
def _on_disk(file: str) -> Iterator[Path]:
    """Give a file that can be read again; what comes on standard input is kept meanwhile."""
    if file != STDIN:
        yield Path(file)
        return
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        kept.flush()
        yield Path(kept.name)


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
        try:
            folder = find_model(model)
            Tokenizer(folder)
        except (ModelNotHere, BackendUnavailable) as error:
            raise click.BadParameter(str(error), param_hint="--model") from None
        return folder
    if model is None and settings.local.model not in ("none", "bundled"):
        return local_model_folder(settings)
    assert settings.models_dir is not None, "load_settings fills it in"
    prepare_model(CHAT, settings.models_dir, tell)
    return settings.models_dir / CHAT.model_id


def _lines(file: str) -> Iterator[bytes]:
    if file == STDIN:
        yield from plain_lines(sys.stdin.buffer)
        return
    try:
        with Path(file).open("rb") as opened:
            yield from plain_lines(opened)
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from None


def _show(report: Report, fixed: Fix | None, form: str) -> None:
    if form == "json":
        figures = msgspec.to_builtins(report)
        shown = figures if fixed is None else {**figures, "fix": msgspec.to_builtins(fixed)}
        click.echo(json.dumps(shown, ensure_ascii=False))
    elif form == "sarif":
        click.echo(json.dumps(as_sarif(report, version("strata-gateway")), ensure_ascii=False))
    else:
        click.echo("\n".join([*_text(report), *(_fixed(report, fixed) if fixed else ())]))


def _text(report: Report) -> Iterator[str]:
    for bad in report.bad:
        yield f"{bad.file}:{bad.line}: {bad.message}"
    for finding in report.findings:
        yield from _finding(finding)
    share = f"hit share {report.hit_share:.1%}"
    if report.findings:
        share += f", about {_reach(report)} without the faults above"
    count = len(report.findings)
    found = f"{count} fault{'s' if count > 1 else ''}" if count else "no faults"
    yield f"{report.requests:,} requests, {report.prompt_tokens:,} tokens: {found}; {share}"


def _reach(report: Report) -> str:
    least, most = f"{report.reachable_share:.0%}", f"{report.reachable_most:.0%}"
    return least if least == most else f"{least} to {most}"


def _finding(finding: Finding) -> Iterator[str]:
    at = finding.position
    name = f" ({finding.name})" if finding.name else ""
    token = "" if at.token is None else f", token {at.token}"
    yield f"{at.file}:{at.line}: {at.field} char {at.char}{token}: {finding.cause}{name}"
    yield f"  {' '.join(finding.detail.split())}; met first at {finding.seen}"
    cost = f"{finding.requests:,} requests, {finding.lost_per_1000:,} tokens per 1,000 requests"
    yield f"  costs: {cost}"
    yield f"  mend: {finding.mend}"


def _fixed(report: Report, fixed: Fix) -> Iterator[str]:
    yield ""
    if fixed.diff:
        yield fixed.diff
    shares = f"hit share {report.hit_share:.1%} before, {fixed.after.hit_share:.1%} after"
    yield f"{fixed.output}: {fixed.changed:,} requests changed; {shares}"
    for kind in fixed.not_made:
        yield f"  not made, it would lower the hit share: the mend of {kind}"
    for finding in fixed.after.findings:
        yield f"  left to its author: {finding.cause}, {finding.lost_per_1000:,} tokens per 1,000"
