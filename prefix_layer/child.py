"""One spawned engine process, the private folder of its socket, and its end."""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from prefix_layer.config import EngineConfig, encode_config

MAX_SOCKET_PATH = 100  # sun_path holds 108 bytes on Linux, 104 on macOS
_TERM_S = 2.0


class Child:
    """A running process. ``socket`` is the ipc path it binds."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self.socket = str(folder / "engine")

    @classmethod
    async def spawn(cls, program: Sequence[str], config: EngineConfig) -> "Child":
        """Start ``program`` with a fresh socket path; stdin stays open as long as we live.

        Raises:
            OSError: the program cannot be started.
        """
        folder = _short_folder()
        try:
            process = await asyncio.create_subprocess_exec(
                *program,
                *("--socket", str(folder / "engine")),
                *("--config", encode_config(config)),
                *("--parent", str(os.getpid())),
                stdin=asyncio.subprocess.PIPE,
            )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(process, folder)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def wait(self) -> str:
        """Wait for the end of the process and say in words how it ended."""
        status = await self._process.wait()
        if status < 0:
            with contextlib.suppress(ValueError):
                return f"killed by {signal.Signals(-status).name}"
        return f"exit status {status}"

    def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self) -> None:
        """Ask the process to end, make it end, and remove its folder."""
        try:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            async with asyncio.timeout(_TERM_S):  # wait_for may swallow a cancellation in 3.11
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        finally:
            self.kill()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self.remove_folder()

    def remove_folder(self) -> None:
        """Remove the socket's name; a line that stands needs it no more, so no crash leaves it."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _short_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="strata-"))
    if len(os.fsencode(folder / "engine")) <= MAX_SOCKET_PATH:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="strata-", dir="/tmp"))
