"""``strata analyze``: what the prefix cache is worth on this machine, and what its KV takes."""

import importlib
from pathlib import Path

import click

from gateway.cli.lazy import LazyGroup
from gateway.cli.options import config_option, json_option

_HERE = "gateway.cli.analyze"


@click.group(
    cls=LazyGroup,
    commands_at={
        "speed": f"{_HERE}.speed:speed",
        "memory": f"{_HERE}.memory:memory",
        "scenarios": f"{_HERE}.scenarios:scenarios",
    },
    invoke_without_command=True,
)
@config_option
@json_option
@click.pass_context
def analyze(context: click.Context, config: Path | None, *, as_json: bool) -> None:
    """Measure what the prefix cache is worth with a model, and how much memory KV takes.

    Without a command: speed, then memory, of the local model.
    """
    if context.invoked_subcommand is None:
        overview = importlib.import_module(f"{_HERE}.overview")
        overview.show_overview(config, as_json=as_json)
