"""One preparer at a time for a models folder, over all processes of the machine."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.bundled.errors import ModelsBusy

_PATIENCE_S = 600.0
_INTERVAL_S = 0.2


@contextmanager
def folder_lock(
    folder: Path, on_wait: Callable[[], None], patience_s: float = _PATIENCE_S
) -> Iterator[None]:
    """Hold the folder's lock; the system lets go of it when the process dies.

    Raises:
        ModelsBusy: another process held it all the while.
    """
    with (folder / ".lock").open("w") as file:
        if not _try_lock(file.fileno()):
            on_wait()
            _wait_for(file.fileno(), folder, patience_s)
        yield


def _wait_for(descriptor: int, folder: Path, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise ModelsBusy(f"another process has been preparing models in {folder} for too long")
        time.sleep(_INTERVAL_S)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
