"""Which backend serves which model, and who stands in when it cannot."""

import asyncio
import dataclasses
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import cast

from msgspec import structs

from gateway.backends.base import (
    Backend,
    Event,
    Final,
    ModelInfo,
    OpenBackend,
    PartHealth,
    Work,
)
from gateway.backends.prices import Prices
from gateway.errors import BackendError, StrataError, UpstreamStatus
from gateway.traces import Traces

ANY = "*"
REFUSED_US = frozenset({401, 403, 408, 429})
SERVER_ERROR = 500

Target = tuple[Backend, ModelInfo]
Fallbacks = Mapping[str, Mapping[str, Sequence[str]]]


class Backends:
    """All backends of one gateway; the first that serves a model gets its requests.

    ``fallbacks`` name, by backend and its model (``*`` for any other), the models that stand in
    for it, in order; each is a model's name or ``BACKEND/MODEL``. ``on_fallback(asked, used)`` is
    told when one answers.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        fallbacks: Fallbacks | None = None,
        on_fallback: Callable[[str, str], None] = lambda _asked, _used: None,
        traces: Traces | None = None,
    ) -> None:
        self._backends = tuple(backends)
        self._open = _open_ones(self._backends)
        self._fallbacks = fallbacks or {}
        self._on_fallback = on_fallback
        self._traces = traces

    def exchange(
        self, gone: Collection[Backend], come: Sequence[Backend], fallbacks: Fallbacks
    ) -> None:
        """Ask others in place of some from now on; requests under way stay where they are."""
        kept = [backend for backend in self._backends if backend not in gone]
        self._backends, self._fallbacks = (*kept, *come), fallbacks
        self._open = _open_ones(self._backends)

    def find(self, model_id: str) -> Target | None:
        """Return the backend of a model and what it says of it; None if nobody serves it.

        A backend that lists the model comes before one that takes it by a pattern.
        """
        for backend in self._backends:
            for info in backend.models():
                if info.model_id == model_id:
                    return backend, info
        for backend in self._open:
            if matched := backend.match(model_id):
                return backend, matched
        return None

    def lists(self, model_id: str) -> bool:
        """Say whether a backend has a model of this name, not only a pattern that fits it."""
        return any(
            info.model_id == model_id for backend in self._backends for info in backend.models()
        )

    def prices_of(self, model_id: str) -> Prices | None:
        """Return what a model's tokens cost; None when nothing was said of it."""
        found = self.find(model_id)
        return found[1].prices if found else None

    async def stream(
        self, backend: Backend, work: Work, may_use: Callable[[str], bool] = lambda _model: True
    ) -> AsyncIterator[Event]:
        """Generate with this backend, else with those that stand in for it and ``may_use`` allows.

        Another one is asked only while no event was given, and only for a failure that is not the
        request's own fault. When all fail, the error is the first one's.
        """
        failure: BackendError | None = None
        for target, model_id in self._targets(backend, work.model):
            is_first = failure is None
            if not is_first and not may_use(model_id):
                continue
            async with aclosing(
                self._stream(target, dataclasses.replace(work, model=model_id))
            ) as events:
                try:
                    event: Event | None = await anext(events, None)
                except StrataError as error:
                    if is_first and not (isinstance(error, BackendError) and _may_pass_on(error)):
                        raise
                    failure = failure or cast("BackendError", error)
                    continue
                if not is_first:
                    self._on_fallback(work.model, model_id)
                while event is not None:
                    yield event if is_first else _stood_in(event, model_id)
                    event = await anext(events, None)
                return
        assert failure is not None, "there is always the backend itself"
        raise failure

    def following(
        self, backend: Backend, model_id: str, api: str
    ) -> AbstractContextManager[Mapping[str, str]]:
        """Follow one piece of work; gives the headers that tell an upstream of its trace."""
        if self._traces is None:
            return nullcontext({})
        is_remote = isinstance(backend, OpenBackend)
        return self._traces.generating(backend.name, model_id, api, is_remote=is_remote)

    def _stream(self, target: Backend, work: Work) -> AsyncGenerator[Event, None]:
        if self._traces is None:
            return cast("AsyncGenerator[Event, None]", target.stream(work))
        return self._followed(target, work)

    async def _followed(self, target: Backend, work: Work) -> AsyncGenerator[Event, None]:
        with self.following(target, work.model, work.api) as trace:
            sent = target.stream(dataclasses.replace(work, trace=trace))
            async with aclosing(cast("AsyncGenerator[Event, None]", sent)) as events:
                async for event in events:
                    yield event

    def models(self) -> list[ModelInfo]:
        """List every model once, in order of the backends."""
        listed: dict[str, ModelInfo] = {}
        for backend in self._backends:
            for info in backend.models():
                listed.setdefault(info.model_id, info)
        return list(listed.values())

    async def health(self) -> Mapping[str, PartHealth]:
        """Return each backend's state by its name."""
        states = await asyncio.gather(*(backend.health() for backend in self._backends))
        return {b.name: state for b, state in zip(self._backends, states, strict=True)}

    async def close(self) -> None:
        """Close them all."""
        for backend in self._backends:
            await backend.close()

    def _targets(self, backend: Backend, model_id: str) -> Iterator[tuple[Backend, str]]:
        yield backend, model_id
        by_model = self._fallbacks.get(backend.name, {})
        for name in by_model.get(model_id, by_model.get(ANY, ())):
            found = self._named(name)
            if found is not None and (found[0], found[1].model_id) != (backend, model_id):
                yield found[0], found[1].model_id

    def _named(self, name: str) -> Target | None:
        """Return what a fallback's name stands for: a backend's model, else any model."""
        owner, _, model_id = name.partition("/")
        for backend in self._backends:
            if backend.name == owner and (info := _served(backend, model_id)):
                return backend, info
        return self.find(name)


def _open_ones(backends: Iterable[Backend]) -> tuple[OpenBackend, ...]:
    """Return those that match names; asking a protocol for each request takes 50 µs."""
    return tuple(backend for backend in backends if isinstance(backend, OpenBackend))


def _served(backend: Backend, model_id: str) -> ModelInfo | None:
    if isinstance(backend, OpenBackend):
        return backend.match(model_id)
    return next((info for info in backend.models() if info.model_id == model_id), None)


def _may_pass_on(error: BackendError) -> bool:
    """Say whether another model may do better: not when the request itself was refused."""
    if not isinstance(error, UpstreamStatus):
        return True
    return error.status >= SERVER_ERROR or error.status in REFUSED_US


def _stood_in(event: Event, model_id: str) -> Event:
    return structs.replace(event, stand_in=model_id) if isinstance(event, Final) else event
