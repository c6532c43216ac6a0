"""``strata keys``: API keys, kept as hashes in a file that a running gateway reads anew."""

import json
from pathlib import Path

import click

from gateway.cli.lazy import LazyGroup
from gateway.cli.options import config_option, json_option, settings_of
from gateway.cli.output import print_table
from gateway.keys_file import KeysFileError, add_key, list_keys, revoke_key

_HERE = "gateway.cli.keys"

file_option = click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keys file.  [default: api_keys_file of the settings]",
)


@click.group(
    cls=LazyGroup,
    commands_at={
        "add": f"{_HERE}:add",
        "list": f"{_HERE}:list_",
        "revoke": f"{_HERE}:revoke",
    },
)
def keys() -> None:
    """Add, list and revoke API keys."""


@click.command("add")
@click.argument("tenant")
@config_option
@file_option
@json_option
def add(tenant: str, config: Path | None, path: Path | None, *, as_json: bool) -> None:
    """Make a key for TENANT and print it; it cannot be shown again."""
    key_id, key = add_key(_keys_file(config, path), tenant)
    if as_json:
        click.echo(json.dumps({"id": key_id, "tenant": tenant, "key": key}))
        return
    click.echo(f"{key_id} for tenant {tenant}; keep the key, only its hash is stored:", err=True)
    click.echo(key)


@click.command("list")
@config_option
@file_option
@json_option
def list_(config: Path | None, path: Path | None, *, as_json: bool) -> None:
    """Show the ids and tenants of all keys."""
    rows = list_keys(_keys_file(config, path))
    if as_json:
        listed = [{"id": row.key_id, "tenant": row.tenant, "created": row.created} for row in rows]
        click.echo(json.dumps(listed))
        return
    print_table(
        ("id", "tenant", "created"), [(row.key_id, row.tenant, row.created) for row in rows]
    )


@click.command("revoke")
@click.argument("key_id")
@config_option
@file_option
def revoke(key_id: str, config: Path | None, path: Path | None) -> None:
    """Take the key with this id out; a running gateway refuses it within a second or two."""
    revoke_key(_keys_file(config, path), key_id)
    click.echo(f"{key_id} is revoked", err=True)


def _keys_file(config: Path | None, path: Path | None) -> Path:
    chosen = path or settings_of(config).api_keys_file
    if chosen is None:
        raise KeysFileError("no keys file: name one by --file or STRATA_API_KEYS_FILE")
    return chosen
