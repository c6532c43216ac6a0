"""The write-back queue: bounded, beside the response path, drained at the end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from gateway.write_back import WriteBack


@contextlib.asynccontextmanager
async def running(queue: WriteBack) -> AsyncIterator[None]:
    worker = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        worker.cancel()
        await asyncio.wait([worker])


async def test_put_returns_after_the_write_when_the_worker_is_free() -> None:
    """Whoever reads an answer finds it stored."""
    written: list[int] = []

    async def job() -> None:
        written.append(1)

    queue = WriteBack(4, lambda: None)
    async with running(queue):
        await queue.put(job, wait_s=5)
        assert written == [1]


async def test_put_gives_up_waiting_when_the_write_is_slow() -> None:
    """A slow store delays no answer, and the write still happens."""
    gate, written = asyncio.Event(), asyncio.Event()

    async def job() -> None:
        await gate.wait()
        written.set()

    queue = WriteBack(4, lambda: None)
    async with running(queue):
        await queue.put(job, wait_s=0.01)
        assert not written.is_set()
        assert not await queue.drain(0.01)
        gate.set()
        assert await queue.drain(5)
        assert written.is_set()


async def test_write_is_dropped_and_counted_when_the_queue_is_full() -> None:
    """Overflow costs a cache entry, never memory or time."""
    drops: list[None] = []

    async def job() -> None:
        return

    queue = WriteBack(1, lambda: drops.append(None))
    await queue.put(job, wait_s=0.001)
    await queue.put(job, wait_s=0.001)
    assert len(drops) == 1
