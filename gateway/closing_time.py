"""Ends the process when closing its parts takes too long. Knows no parts."""

import asyncio
import contextlib
import faulthandler
import os
import sys
import threading
from collections.abc import Iterator

OVERDUE = 1  # the status then


@contextlib.contextmanager
def closing_within(limit_s: float) -> Iterator[None]:
    """End the process if the block takes longer, even where the event loop stands still.

    What is waited for, and what every thread is at, goes to standard error.
    """
    tasks = asyncio.all_tasks()

    def end() -> None:
        waiting = [task for task in tasks if not task.done()]
        sys.stderr.write(f"strata: not closed after {limit_s:g} s: {waiting}\n")
        sys.stderr.flush()
        faulthandler.dump_traceback()
        os._exit(OVERDUE)

    watchdog = threading.Timer(limit_s, end)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
