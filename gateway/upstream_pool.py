"""The upstreams in use: opened, watched, and exchanged while requests go on."""

import asyncio
from collections.abc import Collection, Sequence
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
        """Have the upstreams of these settings; those that go end what they have begun.

        What is raised while one of them is built leaves everything as it was.
        """
        before = self._running
        kept = {each.name for each in settings.upstreams if self._is_kept(each, settings)}
        made = await self._build(settings, kept)
        after = {
            each.name: before[each.name]
            if each.name in kept
            else _started(each, settings, made[each.name])
            for each in settings.upstreams
        }
        self._running = after
        for name, old in before.items():
            if after.get(name) is not old:
                self._leave(old)

    def _is_kept(self, wanted: UpstreamSettings, settings: Settings) -> bool:
        old, key = self._running.get(wanted.name), settings.upstream_keys.get(wanted.name)
        return old is not None and (old.settings, old.key) == (wanted, key)

    async def _build(self, settings: Settings, kept: Collection[str]) -> dict[str, UpstreamBackend]:
        """Build all that are new, and look at them; or none."""
        made: dict[str, UpstreamBackend] = {}
        try:
            for each in settings.upstreams:
                if each.name not in kept:
                    made[each.name] = build_upstream(each, settings, self._on_answer)
            await asyncio.gather(*(backend.refresh() for backend in made.values()))
        except BaseException:
            for backend in made.values():
                await backend.close()
            raise
        return made

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


def _started(each: UpstreamSettings, settings: Settings, backend: UpstreamBackend) -> _Running:
    watching = asyncio.create_task(backend.watch(each.health_every_s))
    return _Running(each, settings.upstream_keys.get(each.name), backend, watching)


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
