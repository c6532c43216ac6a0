"""Counts within windows of time, in memory or shared through Redis. Knows no tenant's rules.

A window is counted in slots. What the slot before still weighs is its count times ``carry``, so a
sliding window needs two numbers, not a list of times.
Source: Cloudflare, "How we built rate limiting capable of scaling to millions of domains" (2017).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Window:
    """One count to look at and add to.

    ``slot`` numbers the window's current slot; ``carry`` in 0..1 is the weight of the slot before
    (0: a fixed window). ``limit`` None only counts. ``ttl_s`` must outlast two slots.
    """

    name: str
    slot: int
    carry: float
    cost: int
    limit: int | None
    ttl_s: int


@dataclass(frozen=True, slots=True)
class Counted:
    """What stood in a window's current slot and in the one before, ahead of this request."""

    current: int
    previous: int

    def used(self, window: Window) -> float:
        """Return what counts against the limit now."""
        return self.current + self.previous * window.carry

    def has_room(self, window: Window) -> bool:
        """Say whether the window's cost, or at least one more where it costs nothing yet, fits."""
        return window.limit is None or self.used(window) + max(window.cost, 1) <= window.limit


@dataclass(frozen=True, slots=True)
class Verdict:
    """``refused`` is the index of the first window without room; then nothing was added."""

    refused: int | None
    counted: list[Counted]


class Counters(Protocol):
    """Where windows are counted."""

    async def admit(self, owner: str, windows: Sequence[Window]) -> Verdict:
        """Add every window's cost if all have room, else add nothing; one atomic step.

        Raises:
            StoreUnavailable: the counts cannot be reached.
        """
        ...

    async def close(self) -> None:
        """Release everything; idempotent."""
        ...


class MemoryCounters:
    """Counts of this process alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[tuple[str, str, int], tuple[int, float]] = {}
        self._sweep_at = 0.0

    async def admit(self, owner: str, windows: Sequence[Window]) -> Verdict:
        """Add every window's cost if all have room, else add nothing."""
        counted = [
            Counted(self._count(owner, w.name, w.slot), self._count(owner, w.name, w.slot - 1))
            for w in windows
        ]
        refused = first_without_room(windows, counted)
        if refused is None:
            now = self._clock()
            for window, seen in zip(windows, counted, strict=True):
                key = (owner, window.name, window.slot)
                self._counts[key] = (seen.current + window.cost, now + window.ttl_s)
            self._sweep(now)
        return Verdict(refused, counted)

    async def close(self) -> None:
        """Forget everything."""
        self._counts.clear()

    def _count(self, owner: str, name: str, slot: int) -> int:
        return self._counts.get((owner, name, slot), (0, 0.0))[0]

    def _sweep(self, now: float) -> None:
        if now < self._sweep_at:
            return
        self._sweep_at = now + 60
        self._counts = {key: value for key, value in self._counts.items() if value[1] > now}


def first_without_room(windows: Sequence[Window], counted: Sequence[Counted]) -> int | None:
    """Return the index of the first window that its cost does not fit in; None if all do."""
    pairs = enumerate(zip(windows, counted, strict=True))
    return next((at for at, (window, seen) in pairs if not seen.has_room(window)), None)


def open_counters(url: str, *, connect_timeout_s: float, command_timeout_s: float) -> Counters:
    """Return the counters that ``url`` names: ``memory``, or a Redis server's.

    Nothing is connected yet: a server that is down now is picked up when it comes.
    """
    if url == "memory":
        return MemoryCounters()
    from semantic_layer.stores.redis_connection import RedisConnection  # noqa: PLC0415 - heavy
    from semantic_layer.stores.redis_counters import RedisCounters  # noqa: PLC0415 - heavy

    connection = RedisConnection(
        url,
        connect_timeout_s=connect_timeout_s,
        command_timeout_s=command_timeout_s,
        guarded=True,
    )
    return RedisCounters(connection)
