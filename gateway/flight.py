"""Single-flight: identical requests in flight share one generation.

A flight is a task of its own, so the client that started it may leave while others still listen.
The last one to leave aborts it. Knows no cache and no HTTP.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

from gateway.backends.base import Event

MAX_AHEAD = 512  # events that a generation may be ahead of whoever listens fastest

Source = Callable[[], AsyncIterator[Event]]


class Flight:
    """One generation and its listeners. Events are kept, so a late listener hears all of them.

    A generation that nobody keeps up with waits, and through it the upstream: what a slow client
    has not read stays there. ``on_end`` is called when nobody may join any more: at the end, or
    when the last one left.
    """

    def __init__(self, source: Source, on_end: Callable[["Flight"], None]) -> None:
        self._source = source
        self._on_end = on_end
        self._events: list[Event] = []
        self._places: dict[Listener, int] = {}
        self._ended = False
        self.started_s = time.monotonic()
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self._moved = asyncio.Event()
        self.task = asyncio.create_task(self._fly())

    def join(self) -> "Listener":
        """Add a listener; it counts from now on, whether it reads or not."""
        listener = Listener(self)
        self._places[listener] = 0
        return listener

    async def settled(self) -> None:
        """Wait until the generation and its clean-up are over."""
        await asyncio.wait([self.task])

    def leave(self, listener: "Listener") -> None:
        """Take one listener away; without any the generation is aborted."""
        del self._places[listener]
        if not self._places and not self._ended:
            self._on_end(self)
            self.task.cancel()

    async def listen(self, listener: "Listener") -> AsyncIterator[Event]:
        """Give every event from the first on, then raise what ended the flight, if anything."""
        seen = 0
        while True:
            while seen < len(self._events):
                yield self._events[seen]
                seen += 1
                self._places[listener] = seen
                self._moved.set()
            if self._ended:
                break
            news = self._news
            await news.wait()
        if self._error is not None:
            raise self._error

    async def _fly(self) -> None:
        events = self._source()
        try:
            async for event in events:
                self._events.append(event)
                self._tell()
                while self._is_far_ahead():
                    self._moved.clear()
                    await self._moved.wait()
        except Exception as error:  # noqa: BLE001 - handed to every listener, who raises it
            self._error = error
        finally:
            self._ended = True
            self._on_end(self)
            self._tell()
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    def _is_far_ahead(self) -> bool:
        num_events = len(self._events)
        return (
            num_events > MAX_AHEAD
            and num_events - max(self._places.values(), default=num_events) > MAX_AHEAD
        )

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


class Listener:
    """One client's ear on a flight; leaving it early may abort the generation."""

    def __init__(self, flight: Flight) -> None:
        self._flight = flight
        self._left = False
        self._events = flight.listen(self)

    @property
    def age_s(self) -> float:
        """How long ago the generation started."""
        return time.monotonic() - self._flight.started_s

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        try:
            return await anext(self._events)
        except BaseException:
            self._leave()
            raise

    def hears(self, flight: Flight) -> bool:
        """Say whether it is this flight that it listens to."""
        return self._flight is flight

    async def aclose(self) -> None:
        """Leave; idempotent."""
        self._leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if not self._left:
            self._left = True
            self._flight.leave(self)


class FlightGroup:
    """The flights of one process; those that may be joined by their exact key."""

    def __init__(self) -> None:
        self._joinable: dict[str, Flight] = {}
        self._flying: set[Flight] = set()

    def join(self, key: str, besides: Listener | None = None) -> Listener | None:
        """Listen to the flight of this key, if there is one other than ``besides`` listens to."""
        flight = self._joinable.get(key)
        if flight is not None and besides is not None and besides.hears(flight):
            return None
        return flight.join() if flight is not None else None

    def lead(self, key: str, source: Source) -> Listener:
        """Start the flight that later identical requests will join."""
        flight = self._start(source, lambda ended: self._close(key, ended))
        self._joinable[key] = flight
        return flight.join()

    def alone(self, source: Source) -> Listener:
        """Start a flight nobody else can join."""
        return self._start(source, lambda _: None).join()

    def __len__(self) -> int:
        return len(self._flying)

    async def drain(self) -> None:
        """Wait until every flight has ended, aborted ones included."""
        for flight in list(self._flying):
            await flight.settled()

    def _start(self, source: Source, on_end: Callable[[Flight], None]) -> Flight:
        flight = Flight(source, on_end)
        self._flying.add(flight)
        flight.task.add_done_callback(lambda _: self._flying.discard(flight))
        return flight

    def _close(self, key: str, flight: Flight) -> None:
        if self._joinable.get(key) is flight:
            del self._joinable[key]
