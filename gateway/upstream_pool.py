"""The upstreams in use: opened, watched, and exchanged while requests go on."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.backends.upstream import UpstreamBackend
from gateway.settings import Settings
from gateway.upstream_settings import UpstreamSettings
from gateway.upstreams import OnAnswer, Upstreams, build_upstream

REST_S = 30.0  # a request may have found an upstream and not asked it yet
_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class _Running:
    settings: UpstreamSettings
    key: str | None
    backend: UpstreamBackend
    watching: asyncio.Task[None]


class UpstreamPool:
    """Keeps what the settings did not change, with all that is known of its health.

    ``on_answer(name, status)`` is told how each try was answered.
    """

    def __init__(self, on_answer: OnAnswer) -> None:
        self._on_answer = on_answer
        self._running: dict[str, _Running] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def upstreams(self) -> Upstreams:
        """The backends by name, in the settings' order."""
        return {name: each.backend for name, each in self._running.items()}

    async def use(self, settings: Settings) -> None:
        """Have the upstreams of these settings; those that go end what they have begun."""
        before, after = self._running, {}
        made: list[UpstreamBackend] = []
        for each in settings.upstreams:
            old, key = before.get(each.name), settings.upstream_keys.get(each.name)
            if old is not None and (old.settings, old.key) == (each, key):
                after[each.name] = old
                continue
            backend = build_upstream(each, settings, self._on_answer)
            made.append(backend)
            watching = asyncio.create_task(backend.watch(each.health_every_s))
            after[each.name] = _Running(each, key, backend, watching)
        await asyncio.gather(*(backend.refresh() for backend in made))
        self._running = after
        for name, old in before.items():
            if after.get(name) is not old:
                self._leave(old)

    async def close(self) -> None:
        """Close every connection."""
        for task in [*self._leaving, *(each.watching for each in self._running.values())]:
            task.cancel()
        await _ended([*self._leaving, *(each.watching for each in self._running.values())])
        for each in self._running.values():
            await each.backend.close()

    def _leave(self, old: _Running) -> None:
        old.watching.cancel()
        task = asyncio.create_task(_close_when_idle(old.backend))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


async def _close_when_idle(backend: UpstreamBackend) -> None:
    try:
        await asyncio.sleep(REST_S)
        while any(replica.in_flight for replica in backend.replicas):  # noqa: ASYNC110 - not ours
            await asyncio.sleep(_LOOK_EVERY_S)
    finally:
        await backend.close()


async def _ended(tasks: Sequence["asyncio.Task[None]"]) -> None:
    if tasks:
        await asyncio.wait(tasks)
