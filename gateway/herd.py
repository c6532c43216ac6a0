"""One generation for identical requests that reach several gateways at once. Knows no HTTP.

The gateway that holds a request's lease generates; the others wait for the entry that it stores,
and the next one takes over when it gives up or dies. A lease problem never fails a request: then
every gateway generates for itself, as one does that has waited for too long.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from gateway.answer import Answer
from gateway.backends.base import Event
from gateway.replay import replay
from gateway.write_back import Job
from semantic_layer import Lease, Leases, StoreUnavailable

FIRST_PAUSE_S = 0.02
MAX_PAUSE_S = 0.25
PATIENCE_S = 30.0  # a reader that stalls the other gateway's generation must not stall ours

Stored = Callable[[], Awaitable[Answer | None]]
Generate = Callable[[], AsyncIterator[Event]]


class Herd:
    """Lets one of several gateways generate.

    ``after_writes(job)`` runs a job when the writes that are waiting now are done, so that nobody
    finds neither a lease nor the entry.
    """

    def __init__(
        self,
        leases: Leases,
        after_writes: Callable[[Job], Awaitable[None]],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._patience_s = patience_s
        self._leases = leases
        self._after_writes = after_writes

    async def events(
        self, name: str, stored: Stored, generate: Generate, on_follow: Callable[[], None]
    ) -> AsyncIterator[Event]:
        """Give the events of the one generation: this gateway's, or another's once it is stored.

        ``on_follow`` is called before the first event when it is another's.
        """
        pause_s, give_up_at = FIRST_PAUSE_S, time.monotonic() + self._patience_s
        while True:
            lease = await self._acquired(name)
            if lease is None and time.monotonic() > give_up_at:
                lease = _Unleased()
            try:
                answer = await stored()
                if answer is None and lease is not None:
                    async for event in generate():
                        yield event
                    return
            finally:
                if lease is not None:
                    await self._after_writes(lease.release)
            if answer is not None:
                on_follow()
                for event in replay(answer):
                    yield event
                return
            await asyncio.sleep(pause_s)
            pause_s = min(MAX_PAUSE_S, pause_s * 1.5)

    async def _acquired(self, name: str) -> Lease | None:
        try:
            return await self._leases.acquire(name)
        except StoreUnavailable:
            return _Unleased()


class _Unleased:
    """Stands for a lease where none can be had."""

    async def release(self) -> None:
        return
