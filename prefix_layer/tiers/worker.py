"""One thread that reads and writes the disk tier, so that no step of the engine waits for it.

Reads go before writes. A buffer handed over belongs to the worker until its result is collected.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from prefix_layer.tiers.block_key import BlockKey
from prefix_layer.tiers.disk import DiskTier

JobKind = Literal["read", "write"]

log = logging.getLogger("strata.kv")


@dataclass(frozen=True, slots=True)
class Job:
    """Read a block into ``memory`` or write it from there; ``ticket`` tells jobs apart."""

    ticket: int
    kind: JobKind
    key: BlockKey
    memory: memoryview


@dataclass(frozen=True, slots=True)
class Done:
    """How a job ended: whether the block is where it should be, and how long it took."""

    job: Job
    succeeded: bool
    seconds: float


class Worker(Protocol):
    """Does jobs on the disk, in its own time. Every job ends in one `Done`."""

    def submit(self, job: Job) -> None:
        """Hand a job over."""
        ...

    def do_soon(self, chore: Callable[[], None]) -> None:
        """Have this called before all jobs that wait."""
        ...

    def do_now(self, chore: Callable[[], None], timeout_s: float) -> bool:
        """Have this called and wait for it; False when it took longer."""
        ...

    def cancel_writes(self) -> list[Job]:
        """Take back the writes that have not begun."""
        ...

    def collect(self) -> list[Done]:
        """Take the results there are."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when there is a result to collect, or after a while."""
        ...

    def close(self) -> None:
        """Stop after the job under way."""
        ...


class DiskWorker:
    """Runs jobs in order of arrival, reads first. Every job ends in one `Done`."""

    def __init__(self, disk: DiskTier) -> None:
        self._disk = disk
        self._reads: deque[Job] = deque()
        self._writes: deque[Job] = deque()
        self._chores: deque[Callable[[], None]] = deque([disk.look_around])
        self._done: deque[Done] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="strata-kv", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Hand a job over."""
        with self._changed:
            (self._reads if job.kind == "read" else self._writes).append(job)
            self._changed.notify_all()

    def do_soon(self, chore: Callable[[], None]) -> None:
        """Let the worker call this between jobs, before all that wait."""
        with self._changed:
            self._chores.append(chore)
            self._changed.notify_all()

    def do_now(self, chore: Callable[[], None], timeout_s: float) -> bool:
        """Let the worker call this next and wait for it; False when it took longer."""
        ended = threading.Event()

        def run() -> None:
            try:
                chore()
            finally:
                ended.set()

        self.do_soon(run)
        return ended.wait(timeout_s)

    def cancel_writes(self) -> list[Job]:
        """Take back the writes that have not begun."""
        with self._changed:
            cancelled = list(self._writes)
            self._writes.clear()
        return cancelled

    def collect(self) -> list[Done]:
        """Take the results there are."""
        results: list[Done] = []
        while self._done:
            results.append(self._done.popleft())
        return results

    def wait(self, timeout_s: float) -> None:
        """Return when there is a result to collect, or after a while."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._done), timeout_s)

    def close(self) -> None:
        """Stop after the job under way."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._disk.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._has_work)
                if self._closing:
                    return
                chore = self._chores.popleft() if self._chores else None
                queue = self._reads or self._writes
                job = queue.popleft() if queue and chore is None else None
            if chore is not None:
                self._guard(chore)
            if job is not None:
                self._finish(job)

    def _has_work(self) -> bool:
        return bool(self._closing or self._chores or self._reads or self._writes)

    def _finish(self, job: Job) -> None:
        begin = time.perf_counter()
        succeeded = self._guard(lambda: self._perform(job))
        done = Done(job, succeeded, time.perf_counter() - begin)
        with self._changed:
            self._done.append(done)
            self._changed.notify_all()

    def _perform(self, job: Job) -> bool:
        if job.kind == "read":
            return self._disk.read(job.key, job.memory) == "whole"
        return self._disk.write(job.key, job.memory)

    def _guard(self, work: Callable[[], bool | None]) -> bool:
        """Keep the thread alive: whatever breaks here is a block less, never a request."""
        try:
            return bool(work())
        except Exception:
            log.exception("KV worker failed")
            self._disk.num_failures += 1
            return False
