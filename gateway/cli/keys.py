"""``strata keys``: API keys, kept as hashes in a file that a running gateway reads anew."""

import json
from pathlib import Path
from typing import Any

import click

from gateway.cli.lazy import LazyGroup
from gateway.cli.options import config_option, json_option, settings_of
from gateway.cli.output import print_table
from gateway.keys_file import (
    EVERYBODY,
    KeysFileError,
    add_key,
    list_keys,
    read_keys_file,
    revoke_key,
    set_rules,
)
from gateway.rules import TenantRules

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
        "limit": f"{_HERE}:limit",
        "rules": f"{_HERE}:rules",
    },
)
def keys() -> None:
    """Add, list and revoke API keys; set what their tenants may do."""


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


@click.command("limit")
@click.argument("tenant")
@click.option("--requests-per-minute", type=int, help="Every request counts.")
@click.option("--tokens-per-minute", type=int, help="Tokens that a model processed.")
@click.option("--tokens-per-day", type=int, help="The same, by days of UTC.")
@click.option("--tokens-per-month", type=int, help="The same, by months of UTC.")
@click.option("--max-concurrent", type=int, help="Requests that run at once, per gateway.")
@click.option("--model", "models", multiple=True, help="Allowed model or pattern; repeatable.")
@click.option("--namespace", "namespaces", multiple=True, help="Allowed namespace; repeatable.")
@click.option("--cache", type=click.Choice(["on", "read", "off"]), help="Use of the caches.")
@click.option("--semantic", type=bool, help="Whether semantic hits are served.")
@click.option("--max-ttl-s", type=float, help="Longest life of an answer, in seconds.")
@click.option("--clear", multiple=True, metavar="RULE", help="Take a rule away; repeatable.")
@config_option
@file_option
@json_option
def limit(
    tenant: str,
    config: Path | None,
    path: Path | None,
    clear: tuple[str, ...],
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Set what TENANT may do, or with '*' all tenants without rules of their own.

    A running gateway obeys within a second or two.
    """
    changes = {name: value for name, value in given.items() if value not in (None, ())}
    changes |= dict.fromkeys(name.replace("-", "_") for name in clear)
    if not changes:
        raise KeysFileError("nothing to change: name a limit, or --clear RULE")
    file = _keys_file(config, path)
    kept = set_rules(file, tenant, changes)
    if tenant != EVERYBODY and all(row.tenant != tenant for row in list_keys(file)):
        click.echo(f"note: tenant {tenant!r} has no key yet", err=True)
    _print_rules({tenant: kept}, as_json=as_json)


@click.command("rules")
@config_option
@file_option
@json_option
def rules(config: Path | None, path: Path | None, *, as_json: bool) -> None:
    """Show the rules of all tenants that have some."""
    _print_rules(read_keys_file(_keys_file(config, path)).rules, as_json=as_json)


def _print_rules(rules_of: dict[str, TenantRules], *, as_json: bool) -> None:
    tables = {tenant: kept.changed() for tenant, kept in rules_of.items()}
    if as_json:
        click.echo(json.dumps(tables))
        return
    rows = [(t, name, json.dumps(v)) for t, table in tables.items() for name, v in table.items()]
    print_table(("tenant", "rule", "value"), rows)


def _keys_file(config: Path | None, path: Path | None) -> Path:
    chosen = path or settings_of(config).api_keys_file
    if chosen is None:
        raise KeysFileError("no keys file: name one by --file or STRATA_API_KEYS_FILE")
    return chosen
