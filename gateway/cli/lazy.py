"""Click groups whose commands are imported on use, and whose errors are one line.

Source: "Lazily Loading Subcommands" in click's documentation.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from gateway.bundled import BundledModelError
from gateway.cli.errors import AdminApiError, BackupFileError, NoRow
from gateway.errors import StrataError
from gateway.keys_file import KeysFileError
from gateway.settings import SettingsError
from prefix_layer import PrefixLayerError

USER_ERRORS = (
    AdminApiError,
    BackupFileError,
    BundledModelError,
    KeysFileError,
    NoRow,
    SettingsError,
    StrataError,
    PrefixLayerError,
)


class Refused(click.ClickException):
    """The command line is wrong; said in one line, where click says it in three."""

    exit_code = click.UsageError.exit_code

    def __init__(self, error: click.UsageError) -> None:
        said = one_line(error.format_message()).rstrip(".")
        super().__init__(f"{said}; see {error.ctx.command_path} --help" if error.ctx else said)


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

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the group's own options."""
        with _in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error its user can mend ends it with one line."""
        with _in_one_line():
            return super().invoke(ctx)


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise Refused(error) from error
    except USER_ERRORS as error:
        raise click.ClickException(one_line(error)) from error


def one_line(error: BaseException | str) -> str:
    """Return an error's text on one line; for the system's errors, with the file first."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
