"""``strata models``: the bundled models, made ready, listed and tried."""

import json
from pathlib import Path

import click

from gateway.bundled import ModelState, inspect, prepare, verify
from gateway.cli.lazy import LazyGroup
from gateway.cli.options import (
    config_option,
    json_option,
    models_dir_of,
    models_dir_option,
)
from gateway.cli.output import print_table
from gateway.cli.progress import narrated

_HERE = "gateway.cli.models"
_BYTES_PER_MB = 1_000_000


@click.group(
    cls=LazyGroup,
    commands_at={
        "prepare": f"{_HERE}:prepare_models",
        "list": f"{_HERE}:list_models",
        "verify": f"{_HERE}:verify_models",
    },
)
def models() -> None:
    """Prepare, list and verify the bundled models."""


@click.command("prepare")
@config_option
@models_dir_option
@json_option
def prepare_models(config: Path | None, models_dir: Path | None, *, as_json: bool) -> None:
    """Make the bundled models ready; does nothing when they are."""
    folder = models_dir_of(config, models_dir)
    with narrated() as tell:
        prepare(folder, tell)
    _show(inspect(folder), as_json=as_json)


@click.command("list")
@config_option
@models_dir_option
@json_option
def list_models(config: Path | None, models_dir: Path | None, *, as_json: bool) -> None:
    """Show which bundled models are ready, and where."""
    folder = models_dir_of(config, models_dir)
    _show(inspect(folder), as_json=as_json)


@click.command("verify")
@config_option
@models_dir_option
@json_option
def verify_models(config: Path | None, models_dir: Path | None, *, as_json: bool) -> None:
    """Read every file of the prepared models, and ask each one something known."""
    folder = models_dir_of(config, models_dir)
    with narrated() as tell:
        outputs = verify(folder, tell)
    if as_json:
        click.echo(json.dumps(outputs, ensure_ascii=False))
        return
    for model_id, output in outputs.items():
        click.echo(f"{model_id}: {output}")


def _show(states: list[ModelState], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([_as_json(state) for state in states]))
        return
    rows = [
        (state.model_id, state.state, f"{state.num_bytes / _BYTES_PER_MB:.0f}", str(state.path))
        for state in states
    ]
    print_table(("model", "state", "MB", "folder"), rows)


def _as_json(state: ModelState) -> dict[str, str | int]:
    return {
        "model": state.model_id,
        "state": state.state,
        "bytes": state.num_bytes,
        "path": str(state.path),
    }
