"""``strata serve``: one gateway, from settings to a stopped process."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import structlog
from litestar import Litestar

from gateway.address import CannotListen, free_port
from gateway.app import create_app
from gateway.auth import check_exposure
from gateway.bundled import CHAT, EMBEDDER, BundledModel, prepare_model
from gateway.cli.lazy import one_line
from gateway.cli.options import config_option, settings_of
from gateway.cli.progress import narrated
from gateway.cli.toml import to_toml
from gateway.errors import StrataError
from gateway.server import StartInterrupted, run
from gateway.setting_sections import LogSettings
from gateway.settings import Settings, describe
from prefix_layer import PrefixLayerError
from semantic_layer import SemanticLayerError

_CANNOT_START = (CannotListen, StrataError, SemanticLayerError, PrefixLayerError, OSError)
_INTERRUPTED = 130  # what a shell reports for a command ended by Ctrl-C


@click.command("serve")
@config_option
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one.  [default: 8000]")
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Folder of the stores.  [default: .strata]"
)
@click.option(
    "--models-dir", type=click.Path(path_type=Path), help="Folder of prepared bundled models."
)
@click.option(
    "--print-config",
    "print_config",
    is_flag=True,
    help="Print the effective settings, secrets masked, and exit.",
)
@click.option("--json", "as_json", is_flag=True, help="With --print-config: print JSON, not TOML.")
def serve(config: Path | None, *, print_config: bool, as_json: bool, **overrides: Any) -> None:
    """Run the gateway until Ctrl-C.

    Every other setting is set in strata.toml, or by a variable STRATA_SECTION__KEY;
    --print-config shows them all.
    """
    settings = settings_of(config, **overrides)
    if print_config:
        _print(settings, as_json=as_json)
        return
    check_exposure(settings)
    _serve(settings, lambda: settings_of(config, **overrides))


def _print(settings: Settings, *, as_json: bool) -> None:
    described = describe(settings)
    click.echo(json.dumps(described, indent=2) if as_json else to_toml(described), nl=as_json)


def _serve(settings: Settings, load: Callable[[], Settings]) -> None:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # the embedder's threads; see prefix_layer
    try:
        port = free_port(settings.host, settings.port)
        _prepare_models(settings)
        app = create_app(settings, load=load)
        run(
            app,
            settings.host,
            port,
            lambda url: _say_ready(url, settings.log),
            drain_s=settings.drain_s,
            on_hangup=lambda: _hang_up(app),
        )
    except _CANNOT_START as error:
        raise click.ClickException(one_line(error)) from error
    except StartInterrupted as error:
        click.echo(f"strata: {error}", err=True)
        _leave(_INTERRUPTED)
    _leave(0)


def _hang_up(app: Litestar) -> None:
    app.state["parts"].reloader.hang_up()


def _leave(code: int) -> None:
    """End the process at once, now that every part is closed.

    Taking the interpreter and torch apart first costs a second or more of the five that stopping
    may take.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _prepare_models(settings: Settings) -> None:
    assert settings.models_dir is not None, "load_settings fills it in"
    with narrated() as tell:
        for model in _bundled_models(settings):
            prepare_model(model, settings.models_dir, tell)


def _bundled_models(settings: Settings) -> list[BundledModel]:
    wanted = []
    if settings.local.model == "bundled":
        wanted.append(CHAT)
    if settings.semantic.enabled and "bundled" in (
        settings.embedder.model,
        settings.semantic.verifier,
    ):
        wanted.append(EMBEDDER)
    return wanted


def _say_ready(url: str, log: LogSettings) -> None:
    """Tell people on standard error, or whatever reads JSON logs by a line among them."""
    if log.format == "json":
        structlog.get_logger(__name__).info("ready", url=url)
    else:
        click.echo(f"Strata is ready on {url}", err=True)
