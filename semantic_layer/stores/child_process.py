"""A child process that ends with its parent, whatever ends the parent.

It is started through a short Python command that asks the kernel for a signal at its parent's
death and then becomes the program: code run between fork and exec would be unsafe in a process
with threads. Linux only; elsewhere a parent that is killed leaves its child behind.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading

_BECOME = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class ChildProcess:
    """Run ``command``; ``ended`` is set on the running loop once it is gone.

    The child gets its own session, so that Ctrl-C in a terminal reaches the parent alone, which
    ends its children in order. ``keep_fds`` stay open in the child. Make it on a thread that lives
    as long as the child should: the kernel takes the end of that thread for the parent's.
    """

    def __init__(self, command: list[str], *, keep_fds: tuple[int, ...] = ()) -> None:
        self.ended = asyncio.Event()
        self._process = subprocess.Popen(  # noqa: S603 - commands come from our own code
            [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=keep_fds,
            start_new_session=True,
        )
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._watch, args=(loop,), name="child", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process id; the same over exec."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status; negative for a signal."""
        return self._process.returncode

    async def stop(self, timeout_s: float) -> None:
        """Ask the child to end and wait; kill it after ``timeout_s``."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(timeout_s):
                await self.ended.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self.ended.wait()

    def _signal(self, number: int) -> None:
        if not self.ended.is_set():
            self._process.send_signal(number)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self.ended.set)
