"""Writes answers back to the caches beside the response path, through one bounded queue."""

import asyncio
from collections.abc import Awaitable, Callable

Job = Callable[[], Awaitable[object]]

WAIT_S = 0.05  # a reader waits so long for its answer to be kept


class WriteBack:
    """One worker over one bounded queue; what does not fit is dropped and counted.

    Args:
        size: how many jobs may wait.
        on_drop: called once for each job that found the queue full.
        carried: takes what the caller knows of its request along with the job.
    """

    def __init__(
        self,
        size: int,
        on_drop: Callable[[], None],
        carried: Callable[[Job], Job] = lambda job: job,
    ) -> None:
        self._queue: asyncio.Queue[tuple[Job, asyncio.Event]] = asyncio.Queue(size)
        self._on_drop = on_drop
        self._carried = carried

    async def put(self, job: Job, *, wait_s: float = WAIT_S) -> None:
        """Queue a job and wait up to ``wait_s`` for it, so that its reader finds it done."""
        done = asyncio.Event()
        try:
            self._queue.put_nowait((self._carried(job), done))
        except asyncio.QueueFull:
            self._on_drop()
            return
        try:
            async with asyncio.timeout(wait_s):
                await done.wait()
        except TimeoutError:
            return

    async def after(self, job: Job) -> None:
        """Run a job behind those that wait now, or at once where there is no room to wait."""
        try:
            self._queue.put_nowait((job, asyncio.Event()))
        except asyncio.QueueFull:
            await job()

    async def run(self) -> None:
        """Work until cancelled; a job may not raise anything but what ends the worker."""
        while True:
            job, done = await self._queue.get()
            try:
                await job()
            finally:
                done.set()
                self._queue.task_done()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until the queue is empty; say whether it became so in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._queue.join()
        except TimeoutError:
            return False
        return True
