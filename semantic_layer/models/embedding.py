"""Turn texts into unit vectors beside the event loop; knows no stores and no caches.

An `Encoder` is a loaded model, called from one worker thread only; `ThreadedEmbedder` puts calls
that wait at the same time into one batch. Heavy libraries are imported by `load_encoder` alone.
"""

import asyncio
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from semantic_layer.errors import EmbedderFailed, TextTooLong

Vectors = npt.NDArray[np.float32]


class Encoder(Protocol):
    """A loaded model. Not thread-safe.

    ``fingerprint`` changes whenever vectors would; ``window_tokens`` counts special tokens and
    prompt, as `count_tokens` does. `encode` gives unit rows ``(len(texts), dim)`` and is told
    only texts inside the window.
    """

    fingerprint: str
    dim: int
    window_tokens: int

    def count_tokens(self, text: str) -> int:
        """Return the tokens the model would read for this text, before any cut."""
        ...

    def knows_word(self, word: str) -> bool:
        """Say whether a lower-case word is a whole piece of the vocabulary; thread-safe."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch."""
        ...


class Embedder(Protocol):
    """What the cache asks vectors of."""

    fingerprint: str
    dim: int
    window_tokens: int

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows ``(len(texts), dim)``, float32.

        Raises:
            TextTooLong: a text does not fit the window; a cut text is never embedded.
            EmbedderFailed: the model broke, or the embedder is closed.
        """
        ...

    def knows_word(self, word: str) -> bool:
        """Say whether a lower-case word is a whole piece of the vocabulary."""
        ...

    async def close(self) -> None:
        """Stop working; idempotent."""
        ...


_MOST_CHARS_PER_TOKEN = 24  # pieces of a vocabulary are shorter by far


def most_chars(window_tokens: int) -> int:
    """Return the characters past which a text can't fit a window; white space counts once."""
    return _MOST_CHARS_PER_TOKEN * window_tokens


def is_beyond(text: str, window_tokens: int) -> bool:
    """Say whether a text is so long that it can't fit a window, without reading it."""
    most = most_chars(window_tokens)
    return len(text) > most and len(" ".join(text.split())) > most


class Embedded(NamedTuple):
    """Unit rows ``(num_texts, dim)``, and the tokens the model read for each of them."""

    rows: Vectors
    num_tokens: list[int]


@dataclass(frozen=True, slots=True)
class _Job:
    texts: tuple[str, ...]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Embedded]"

    def finish(self, result: Embedded | Exception) -> None:
        def deliver() -> None:
            if self.future.done():
                return
            if isinstance(result, Exception):
                self.future.set_exception(result)
            else:
                self.future.set_result(result)

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(deliver)


class ThreadedEmbedder:
    """Embeds on one own thread; calls that are waiting when it is free share a batch.

    Args:
        encoder: the loaded model; from here on used by the thread alone.
        max_batch: texts of one forward pass.
    """

    def __init__(self, encoder: Encoder, *, max_batch: int = 16) -> None:
        self.fingerprint = encoder.fingerprint
        self.dim = encoder.dim
        self.window_tokens = encoder.window_tokens
        self._encoder = encoder
        self._max_batch = max_batch
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="embedder", daemon=True)
        self._thread.start()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows ``(len(texts), dim)``; see `Embedder.embed`."""
        return (await self.embed_counted(texts)).rows

    async def embed_counted(self, texts: Sequence[str]) -> Embedded:
        """Return the rows with each text's number of tokens; raises as `Embedder.embed` does."""
        if self._closed:
            raise EmbedderFailed("the embedder is closed")
        if not texts:
            return Embedded(np.zeros((0, self.dim), np.float32), [])
        loop = asyncio.get_running_loop()
        job = _Job(tuple(texts), loop, loop.create_future())
        self._jobs.put(job)
        return await job.future

    def knows_word(self, word: str) -> bool:
        """Say whether a lower-case word is a whole piece of the vocabulary."""
        return self._encoder.knows_word(word)

    async def close(self) -> None:
        """Finish what is queued and end the thread."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (jobs := self._next_batch()) is not None:
            counted = [(job, counts) for job in jobs if (counts := self._count(job)) is not None]
            try:
                rows = self._encode([text for job, _ in counted for text in job.texts])
            except (RuntimeError, ValueError, IndexError) as error:
                for job, _ in counted:
                    job.finish(EmbedderFailed(f"the embedder broke: {error}"))
                continue
            for job, counts in counted:
                job.finish(Embedded(rows[: len(job.texts)], counts))
                rows = rows[len(job.texts) :]

    def _next_batch(self) -> list[_Job] | None:
        job = self._jobs.get()
        jobs: list[_Job] = []
        while job is not None:
            if not job.future.cancelled():
                jobs.append(job)
            if sum(len(job.texts) for job in jobs) >= self._max_batch:
                return jobs
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs
        if jobs:
            self._jobs.put(None)
            return jobs
        return None

    def _count(self, job: _Job) -> list[int] | None:
        """Return the tokens of each text; None, with the job refused, when one is too long."""
        longest = max(job.texts, key=len)
        if is_beyond(longest, self.window_tokens):
            job.finish(TextTooLong(f"{len(longest)} characters", self.window_tokens))
            return None
        counts = [self._encoder.count_tokens(text) for text in job.texts]
        if max(counts) <= self.window_tokens:
            return counts
        job.finish(TextTooLong(f"{max(counts)} tokens", self.window_tokens))
        return None

    def _encode(self, texts: list[str]) -> Vectors:
        """Encode in batches of like length, so that little is spent on padding."""
        rows = np.zeros((len(texts), self.dim), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), self._max_batch):
            chosen = order[start : start + self._max_batch]
            rows[chosen] = self._encoder.encode([texts[i] for i in chosen])
        return rows


def load_encoder(name: str | Path, *, device: str = "cpu") -> Encoder:
    """Load a sentence-transformers folder or name: BERT-like ones on the fast path.

    Raises:
        EmbedderFailed: there is no such model, or it does not load.
    """
    from semantic_layer.models.bert_encoder import BertEncoder, is_plain_bert  # noqa: PLC0415
    from semantic_layer.models.library_encoder import LibraryEncoder  # noqa: PLC0415

    folder = Path(name).expanduser()
    is_path = isinstance(name, Path) or str(name).startswith(("/", ".", "~"))
    if is_path and not folder.is_dir():
        raise EmbedderFailed(f"embedder: no such folder: {folder}")
    if device == "cpu" and is_plain_bert(folder):
        return BertEncoder(folder)
    return LibraryEncoder(str(folder) if folder.is_dir() else str(name), device=device)
