"""The folder of block files that engines share: names, room, leftovers. Knows no KV.

```
LAYOUT/HH/HASH.kv    a block; its modification time is when any engine used it last
writers/TOKEN/lock   held for as long as that writer lives
writers/TOKEN/block  what it is writing now
```
Only files of these names are ever touched. A lock that can be had belongs to a dead writer, on
whichever machine or container it lived, so its scratch files can go.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SUFFIX = ".kv"
_WRITERS = "writers"
_TRASH = "trash-"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A block file as a scan found it; ``used_ns`` is its modification time."""

    path: str
    num_bytes: int
    used_ns: int


class KvFolder:
    """One engine's use of a shared folder.

    Raises:
        OSError: the folder can't be made or written to.
    """

    def __init__(self, folder: Path, layout_name: str) -> None:
        self._folder = folder
        self.own = folder / layout_name
        self._writers = folder / _WRITERS
        self._lock: int | None = None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._home = self._enter()

    def path_of(self, own_hash: bytes) -> Path:
        """Return where a block of this layout is kept."""
        name = own_hash.hex()
        return self.own / name[:2] / f"{name}{_SUFFIX}"

    @property
    def scratch(self) -> Path:
        """Where this writer puts a file together."""
        return self._home / "block"

    def scan(self) -> list[StoredFile]:
        """List the blocks of all layouts."""
        found: list[StoredFile] = []
        for layout in _entries(self._folder):
            if layout.name == _WRITERS or not layout.is_dir(follow_symlinks=False):
                continue
            for part in _entries(Path(layout.path)):
                found += _block_files(part.path)
        return found

    def sweep(self) -> int:
        """Remove what dead writers left; return how many there were."""
        dead = 0
        for entry in _entries(self._writers):
            if entry.path != str(self._home):
                dead += _remove_if_dead(Path(entry.path))
        return dead

    def clear(self) -> None:
        """Take every block of this layout away at once, for all engines.

        Raises:
            OSError: they can't be moved.
        """
        with contextlib.suppress(FileNotFoundError):
            self.own.rename(self._home / f"{_TRASH}{secrets.token_hex(4)}")

    def empty_trash(self) -> None:
        """Remove what was taken away."""
        for entry in _entries(self._home):
            if entry.name.startswith(_TRASH):
                shutil.rmtree(entry.path, ignore_errors=True)

    def make_room(self, own_hash: bytes) -> None:
        """Make the folders that a block's file and its scratch stand in.

        Raises:
            OSError: they can't be made.
        """
        self.path_of(own_hash).parent.mkdir(parents=True, exist_ok=True)
        if not self._home.is_dir():
            self.close()
            self._home = self._enter()

    def close(self) -> None:
        """Leave the folder to others."""
        shutil.rmtree(self._home, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _enter(self) -> Path:
        """Make a scratch folder with a lock that nobody has taken for dead meanwhile."""
        while True:
            home = self._writers / secrets.token_hex(8)
            home.mkdir(mode=0o700, parents=True)
            lock = home / "lock"
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if lock.exists():
                self._lock = descriptor
                return home
            os.close(descriptor)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        yield from entries


def _block_files(folder: str) -> Iterator[StoredFile]:
    for entry in _entries(Path(folder)):
        if entry.name.endswith(_SUFFIX):
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                yield StoredFile(entry.path, status.st_size, status.st_mtime_ns)


def _remove_if_dead(home: Path) -> bool:
    try:
        descriptor = os.open(home / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        shutil.rmtree(home, ignore_errors=True)
        return True
    finally:
        os.close(descriptor)
