"""``strata unpin``: let go of all pinned prompts of a running gateway."""

import json
from pathlib import Path

import click

from gateway.cli.admin_client import AdminClient
from gateway.cli.options import config_option, json_option, settings_of, url_option


@click.command("unpin")
@config_option
@url_option
@json_option
def unpin(config: Path | None, url: str | None, *, as_json: bool) -> None:
    """Pin nothing any more in a running gateway's prefix cache.

    What was pinned stays cached until it has to make room. Single prompts: strata warm --unpin.
    """
    with AdminClient(settings_of(config), url) as client:
        done = client.unpin()
    if as_json:
        click.echo(json.dumps(done))
    else:
        click.echo(f"unpinned {done['unpinned_blocks']} blocks", err=True)
