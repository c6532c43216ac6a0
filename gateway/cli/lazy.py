"""Click groups whose commands are imported on use, and whose errors are one line.

Source: "Lazily Loading Subcommands" in click's documentation.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from gateway.bundled import BundledModelError
from gateway.cli.errors import AdminApiError, BackupFileError
from gateway.errors import StrataError
from gateway.keys_file import KeysFileError
from gateway.settings import SettingsError
from prefix_layer import PrefixLayerError

USER_ERRORS = (
    AdminApiError,
    BackupFileError,
    BundledModelError,
    KeysFileError,
    SettingsError,
    StrataError,
    PrefixLayerError,
)


class LazyGroup(click.Group):
    """A group that finds its commands by ``module:attribute``."""

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name the commands in their order of use."""
        return list(self._commands_at)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import and return the command."""
        if cmd_name not in self._commands_at:
            return None
        module, _, attribute = self._commands_at[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error its user can mend ends it with one line."""
        try:
            return super().invoke(ctx)
        except USER_ERRORS as error:
            raise click.ClickException(one_line(error)) from error


def one_line(error: BaseException) -> str:
    """Return an error's text on one line; for the system's errors, with the file first."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
