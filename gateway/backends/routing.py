"""Which backend serves which model."""

import asyncio
from collections.abc import Mapping, Sequence

from gateway.backends.base import Backend, ModelInfo, OpenBackend, PartHealth


class Backends:
    """All backends of one gateway; the first that serves a model gets its requests."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = tuple(backends)

    def find(self, model_id: str) -> tuple[Backend, ModelInfo] | None:
        """Return the backend of a model and what it says of it; None if nobody serves it.

        A backend that lists the model comes before one that takes it by a pattern.
        """
        for backend in self._backends:
            for info in backend.models():
                if info.model_id == model_id:
                    return backend, info
        for backend in self._backends:
            if isinstance(backend, OpenBackend) and (matched := backend.match(model_id)):
                return backend, matched
        return None

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
