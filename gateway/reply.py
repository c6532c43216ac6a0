"""A started answer, read once: as a stream or as a whole. Knows no HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from gateway.answer import Answer, Assembler
from gateway.backends.base import Event, Usage
from gateway.call import CacheReport, Watch
from gateway.errors import BackendError
from gateway.flight import Listener
from gateway.replay import beats


@dataclass(frozen=True, slots=True)
class Started:
    """A generation that has given its first event."""

    first: Event
    listener: Listener


class Reply:
    """A started answer: read it once, as a stream or as a whole.

    A stored one is streamed at ``replay_tokens_per_s``; 0 is at once.
    """

    def __init__(
        self,
        report: CacheReport,
        source: Answer | Started,
        watch: Watch,
        replay_tokens_per_s: float = 0.0,
    ) -> None:
        self.report = report
        self._source = source
        self._watch = watch
        self._replay_tokens_per_s = replay_tokens_per_s

    @property
    def known_usage(self) -> Usage | None:
        """What the answer cost, where that is known before it is read."""
        return self._source.usage if isinstance(self._source, Answer) else None

    @property
    def is_ready(self) -> bool:
        """Whether all of it can be given at once: it is stored, and played at no pace."""
        return isinstance(self._source, Answer) and self._replay_tokens_per_s == 0

    async def events(self) -> AsyncIterator[Event]:
        """Give the events; closing early aborts the work nobody else listens to.

        Raises:
            BackendError: the backend broke after its first event.
        """
        with self._watch as watch:
            if isinstance(self._source, Answer):
                async for event in self._replayed(self._source):
                    watch.saw(event)
                    yield event
                watch.completed(self._source.usage)
                return
            async with self._source.listener as listener:
                watch.saw(self._source.first)
                yield self._source.first
                async for event in listener:
                    watch.saw(event)
                    yield event

    async def _replayed(self, answer: Answer) -> AsyncIterator[Event]:
        rate = self._replay_tokens_per_s
        started, due_s = time.perf_counter(), 0.0
        for beat in beats(answer, words=rate > 0):
            if due_s:
                await asyncio.sleep(started + due_s - time.perf_counter())
            yield beat.event
            if rate > 0:
                due_s += beat.num_tokens / rate

    async def answer(self) -> Answer:
        """Wait for the whole answer.

        Raises:
            BackendError: the backend broke or ended before the answer was complete.
        """
        if isinstance(self._source, Answer):
            with self._watch as watch:
                watch.completed(self._source.usage)
                return self._source
        assembler = Assembler()
        async for event in self.events():
            assembler.add(event)
        if assembler.answer is None:
            raise BackendError("the answer ended before it was complete")
        return assembler.answer

    async def aclose(self) -> None:
        """Give up an answer that was never read."""
        if not isinstance(self._source, Answer):
            await self._source.listener.aclose()
        self._watch.aborted()


async def started(listener: Listener) -> Started:
    """Wait for the first event.

    Raises:
        BackendError: there is none.
    """
    try:
        return Started(await anext(listener), listener)
    except StopAsyncIteration:
        raise BackendError("the backend gave no answer") from None
