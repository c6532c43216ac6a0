"""The command ``strata``: each command in a module of its own, imported when it is asked for."""

import click

from gateway.cli.lazy import LazyGroup

COMMANDS = {
    "serve": "gateway.cli.serve:serve",
    "models": "gateway.cli.models:models",
    "keys": "gateway.cli.keys:keys",
    "warm": "gateway.cli.warm:warm",
    "unpin": "gateway.cli.unpin:unpin",
    "import": "gateway.cli.transfer:import_entries",
    "export": "gateway.cli.transfer:export_entries",
    "backup": "gateway.cli.backup:back_up",
    "restore": "gateway.cli.backup:restore",
    "thresholds": "gateway.cli.thresholds:thresholds",
    "trace": "gateway.cli.trace:trace",
    "lint": "gateway.cli.lint:lint",
    "doctor": "gateway.cli.doctor:doctor",
    "bench": "gateway.cli.bench:bench",
    "analyze": "gateway.cli.analyze:analyze",
}


@click.group(
    cls=LazyGroup,
    commands_at=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="strata-gateway", prog_name="strata")
def strata() -> None:
    """Answer LLM requests from the cheapest layer that can answer them rightly."""


def main() -> None:
    """Run the command line."""
    strata(prog_name="strata")
