"""Makes stale answers anew beside the traffic (stale-while-revalidate, RFC 5861). Knows no HTTP."""

import asyncio
from collections.abc import Awaitable, Callable

from gateway.errors import StrataError
from gateway.flight import Listener

MOST = 4

Open = Callable[[], Awaitable[Listener | None]]
OnRefresh = Callable[[str], None]


class Refresher:
    """Runs at most `MOST` generations that nobody waits for; a key is refreshed once at a time.

    What does not fit is left to the next stale hit. ``on_refresh`` is told how each one ended.
    """

    def __init__(self, on_refresh: OnRefresh = lambda _: None) -> None:
        self._on_refresh = on_refresh
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, key: str, opened: Open) -> None:
        """Read what ``opened`` gives to its end, unless that is being done, or too much is."""
        if key in self._running:
            return
        if len(self._running) >= MOST:
            self._on_refresh("skipped")
            return
        self._running[key] = asyncio.create_task(self._run(key, opened), name="refresh")

    async def close(self) -> None:
        """End what is running."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, key: str, opened: Open) -> None:
        try:
            outcome = await _read(opened)
        finally:
            del self._running[key]
        self._on_refresh(outcome)


async def _read(opened: Open) -> str:
    """Read the answer to its end; say how it ended."""
    try:
        listener = await opened()
        if listener is None:
            return "skipped"
        async with listener:
            async for _ in listener:
                pass
    except StrataError:
        return "failed"
    return "done"
