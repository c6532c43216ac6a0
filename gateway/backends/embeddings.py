"""The seam to whatever makes vectors, and the local embedding model behind it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import msgspec

from gateway.backends.base import Event, ModelInfo, PartHealth, Work
from gateway.errors import BackendError, BadRequest, ContextTooLong
from semantic_layer import EmbedderFailed, TextTooLong, ThreadedEmbedder

MAX_BYTES_UNDER_WAY = 2048  # of text; about one window of the bundled model
MAX_TEXTS_UNDER_WAY = 16
MAX_CHARS_A_TOKEN = 64  # a longer text is refused unread, so that reading it holds up nobody


class Embedding(msgspec.Struct, frozen=True):
    """One input's vector as little-endian float32, and the tokens it took."""

    vector: bytes
    num_tokens: int


@dataclass(frozen=True, slots=True)
class EmbedWork:
    """Inputs to embed, each a text or a list of token ids; ``names`` are what clients call them.

    ``fields`` is the rest of the request, unknown fields included; ``headers`` are the client's, as
    far as some upstream relays them; ``trace`` goes to every upstream.
    """

    request_id: str
    model: str
    inputs: Sequence[str | list[int]]
    names: Sequence[str]
    fields: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    trace: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class EmbeddingBackend(Protocol):
    """A backend that makes vectors."""

    async def embed(self, work: EmbedWork) -> list[Embedding]:
        """Return one vector per input, in order.

        Raises:
            BadRequest: an input cannot be embedded as it is; names it.
            BackendError: the backend is down or broke.
        """
        ...


class LocalEmbeddings:
    """Serves the embedding model that the semantic layer also asks.

    ``open_embedder`` gives the model, loading it where that was not done yet. Never more text is
    under way than one window of the model, shared fairly, so that a look-up of the caches waits
    for one small batch at most.
    """

    name = "embeddings"

    def __init__(
        self, model: ModelInfo, open_embedder: Callable[[], Awaitable[ThreadedEmbedder]]
    ) -> None:
        self._info = model
        self._open_embedder = open_embedder
        self._room = _Room(MAX_BYTES_UNDER_WAY)

    def models(self) -> list[ModelInfo]:
        """List the one model."""
        return [self._info]

    async def stream(self, work: Work) -> AsyncIterator[Event]:
        """Refuse: this model writes no text.

        Raises:
            BadRequest: always.
        """
        raise BadRequest(f"the model {work.model!r} makes embeddings, not text", param="model")
        yield  # type: ignore[unreachable]  # makes this a generator

    async def embed(self, work: EmbedWork) -> list[Embedding]:
        """Return one unit vector per text, in order.

        Raises:
            BadRequest: token ids, another width than the model's, or a text beyond its window.
            BackendError: the model broke.
        """
        try:
            embedder = await self._open_embedder()
        except EmbedderFailed as error:
            raise BackendError(f"the embedding model does not load: {error}") from error
        texts = _texts(work)
        asked = work.fields.get("dimensions")
        if asked not in (None, embedder.dim):
            raise BadRequest(
                f"dimensions: the vectors of {work.model!r} have {embedder.dim} numbers and "
                f"cannot be cut, got {asked}",
                param="dimensions",
            )
        turns = asyncio.Semaphore(MAX_TEXTS_UNDER_WAY)
        tasks = [
            asyncio.create_task(self._one(embedder, text, name, turns))
            for text, name in zip(texts, work.names, strict=True)
        ]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def health(self) -> PartHealth:
        """Say that it can be asked; whether the model works shows in the caches' health."""
        return PartHealth(ok=True, state="ready")

    async def close(self) -> None:
        """Leave the model to its owner."""

    async def _one(
        self, embedder: ThreadedEmbedder, text: str, name: str, turns: asyncio.Semaphore
    ) -> Embedding:
        if len(text) > embedder.window_tokens * MAX_CHARS_A_TOKEN:
            raise _too_long(name, f"{len(text)} characters", embedder.window_tokens)
        async with turns, self._room.taken(len(text.encode())):
            try:
                rows, [num_tokens] = await embedder.embed_counted([text])
            except TextTooLong as error:
                raise _too_long(name, error.size, error.window_tokens) from error
            except EmbedderFailed as error:
                raise BackendError(str(error)) from error
        return Embedding(rows[0].astype("<f4").tobytes(), num_tokens)


def _too_long(name: str, size: str, window_tokens: int) -> ContextTooLong:
    return ContextTooLong(
        f"{name}: has {size}, the model reads at most {window_tokens} tokens", param=name
    )


class _Room:
    """A number of bytes to share, first come first served; one that is too large comes alone."""

    def __init__(self, num_bytes: int) -> None:
        self._size = self._free = num_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def taken(self, num_bytes: int) -> AsyncIterator[None]:
        """Wait for so much room and hold it."""
        share = min(num_bytes, self._size)
        await self._take(share)
        try:
            yield
        finally:
            self._give(share)

    async def _take(self, share: int) -> None:
        if not self._waiting and share <= self._free:
            self._free -= share
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((share, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(share)
            raise

    def _give(self, share: int) -> None:
        self._free += share
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._free):
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= wanted
                turn.set_result(None)


def _texts(work: EmbedWork) -> list[str]:
    for item, name in zip(work.inputs, work.names, strict=True):
        if not isinstance(item, str):
            raise BadRequest(
                f"{name}: the model {work.model!r} takes text, not token ids",
                param=name,
                code="unsupported",
            )
    return [item for item in work.inputs if isinstance(item, str)]
