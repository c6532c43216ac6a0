"""Options and settings that several commands share."""

import os
from pathlib import Path
from typing import Any

import click

from gateway.settings import Settings, load_settings

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Settings file.  [default: $STRATA_CONFIG, else strata.toml]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
url_option = click.option("--url", help="The gateway.  [default: host and port of the settings]")
models_dir_option = click.option(
    "--models-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of prepared models.  [default: the settings', else the user's cache folder]",
)


def models_dir_of(config: Path | None, models_dir: Path | None) -> Path:
    """Return the folder of prepared models: the given one, or that of the settings."""
    chosen = settings_of(config, models_dir=models_dir).models_dir
    assert chosen is not None, "load_settings fills it in"
    return chosen


def settings_of(config: Path | None, **overrides: Any) -> Settings:
    """Load the effective settings; overrides that are None don't count.

    Raises:
        SettingsError: with the name of the bad key.
    """
    return load_settings(config, os.environ, overrides)
