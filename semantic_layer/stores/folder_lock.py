"""One owner at a time for a folder, over processes; freed by the kernel when the owner dies."""

import fcntl
import os
import time
from pathlib import Path

from semantic_layer.errors import StoreLocked


class FolderLock:
    """Hold ``folder`` until `release` or the death of all who inherited ``fd``.

    Args:
        folder: made when absent; the lock is the file ``lock`` in it, which names the owner's pid.
        wait_s: how long to wait for an owner that is on its way out.

    Raises:
        StoreLocked: another process, or another part of this one, holds the folder.
    """

    def __init__(self, folder: Path, *, wait_s: float = 0.0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._acquire(folder, time.monotonic() + wait_s)
        except BaseException:
            os.close(self.fd)
            raise

    def release(self) -> None:
        """Give the folder up; harmless when repeated."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _acquire(self, folder: Path, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    owner = os.pread(self.fd, 32, 0).decode().strip() or "unknown"
                    raise StoreLocked(f"{folder} is in use by process {owner}") from None
                time.sleep(0.02)
            else:
                os.ftruncate(self.fd, 0)
                os.pwrite(self.fd, str(os.getpid()).encode(), 0)
                return
