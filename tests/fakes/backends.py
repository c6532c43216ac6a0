"""A backend that plays a script, for unit tests of what stands above it."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from gateway.backends.base import Delta, Event, Final, Finish, ModelInfo, PartHealth, Usage, Work


def whole(text: str, reason: str = "stop") -> list[Event]:
    """Return the events of one complete one-choice answer, a delta per character."""
    deltas: list[Event] = [Delta(0, char) for char in text]
    return [*deltas, Finish(0, reason), Final(Usage(7, len(text), 0))]


class FakeBackend:
    """Plays the given events, counts its calls, and waits at `gate` before the last event."""

    name = "fake"

    def __init__(
        self, script: Sequence[Event], *, model_id: str = "m", error: Exception | None = None
    ) -> None:
        self.script = list(script)
        self.error = error
        self.calls: list[Work] = []
        self.aborted = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._info = ModelInfo(model_id, "fake", "fingerprint")

    def models(self) -> list[ModelInfo]:
        return [self._info]

    async def stream(self, work: Work) -> AsyncIterator[Event]:
        self.calls.append(work)
        try:
            for at, event in enumerate(self.script):
                if at == len(self.script) - 1:
                    await self.gate.wait()
                yield event
                await asyncio.sleep(0)
            if self.error is not None:
                raise self.error
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted += 1
            raise

    async def health(self) -> PartHealth:
        return PartHealth(ok=True, state="ready")

    async def close(self) -> None:
        return
