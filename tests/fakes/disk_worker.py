"""A disk worker that works only when told to, so that a test chooses what happens when."""

from collections import deque
from collections.abc import Callable

from prefix_layer.tiers.disk import DiskTier
from prefix_layer.tiers.worker import Done, Job


class InlineWorker:
    def __init__(self, disk: DiskTier) -> None:
        self._disk = disk
        self._jobs: deque[Job] = deque()
        self._done: list[Done] = []

    @property
    def num_waiting(self) -> int:
        return len(self._jobs)

    def work(self) -> None:
        """Do the oldest job."""
        if self._jobs:
            job = self._jobs.popleft()
            if job.kind == "read":
                succeeded = self._disk.read(job.key, job.memory) == "whole"
            else:
                succeeded = self._disk.write(job.key, job.memory)
            self._done.append(Done(job, succeeded, 0.0))

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def do_soon(self, chore: Callable[[], None]) -> None:
        chore()

    def do_now(self, chore: Callable[[], None], timeout_s: float) -> bool:
        chore()
        return True

    def cancel_writes(self) -> list[Job]:
        cancelled = [job for job in self._jobs if job.kind == "write"]
        self._jobs = deque(job for job in self._jobs if job.kind == "read")
        return cancelled

    def collect(self) -> list[Done]:
        done, self._done = self._done, []
        return done

    def wait(self, timeout_s: float) -> None:
        self.work()

    def close(self) -> None:
        self._disk.close()
