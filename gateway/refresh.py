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
        task = asyncio.create_task(self._run(opened), name="refresh")
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    async def close(self) -> None:
        """End what is running."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, opened: Open) -> None:
        try:
            listener = await opened()
            if listener is None:
                return
            async with listener:
                async for _ in listener:
                    pass
        except StrataError:
            self._on_refresh("failed")
        else:
            self._on_refresh("done")
