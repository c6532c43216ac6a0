"""An upstream's embedding model as the semantic layer's embedder. Knows no store.

Texts asked for at the same time share a request, and the last ones are kept. When the upstream is
away a look-up misses; nothing else happens.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from gateway.backends.base import ModelInfo
from gateway.backends.embeddings import EmbeddingBackend, EmbedWork
from gateway.errors import BackendError, BadRequest, UpstreamStatus
from semantic_layer import EmbedderFailed, TextTooLong, Vectors

MAX_BATCH = 64
MAX_IN_FLIGHT = 4
MAX_KEPT = 2048
BYTES_A_TOKEN = 3  # few texts have shorter tokens on the average
TOO_LARGE = frozenset({400, 413, 422})

Vector = Vectors


class UpstreamEmbedder:
    """`Embedder` over an upstream's ``/embeddings``; made by `open`.

    ``prompt`` is put before every text. A text of more than about ``window_tokens`` is not sent:
    many engines cut what is too long and do not say so.
    """

    def __init__(
        self, backend: EmbeddingBackend, model: ModelInfo, dim: int, *, prompt: str, window: int
    ) -> None:
        identity = f"{model.owned_by}\n{model.model_id}\n{prompt}\n{dim}".encode()
        self.fingerprint = f"upstream-{blake2b(identity, digest_size=16).hexdigest()}"
        self.dim = dim
        self.window_tokens = window
        self._backend = backend
        self._model = model.model_id
        self._prompt = prompt
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._asked: dict[str, asyncio.Future[Vector]] = {}
        self._waiting: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls, backend: EmbeddingBackend, model: ModelInfo, *, prompt: str, window: int
    ) -> "UpstreamEmbedder":
        """Ask for one vector to learn the width of all.

        Raises:
            EmbedderFailed: the upstream gives none.
        """
        try:
            [probe] = await backend.embed(_work(model.model_id, [f"{prompt}width"]))
        except (BackendError, BadRequest) as error:
            raise EmbedderFailed(
                f"embedder: upstream {model.owned_by} gives no vector of {model.model_id}: "
                f"{_said(error)}"
            ) from error
        return cls(backend, model, len(probe.vector) // 4, prompt=prompt, window=window)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows ``(len(texts), dim)``; see `Embedder.embed`."""
        for text in texts:
            num_tokens = len(text.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN
            if num_tokens > self.window_tokens:
                raise TextTooLong(f"{num_tokens} tokens", self.window_tokens)
        rows = [asyncio.shield(self._vector(text)) for text in texts]
        if not rows:
            return np.zeros((0, self.dim), np.float32)
        return np.stack(await asyncio.gather(*rows))

    def knows_word(self, word: str) -> bool:  # noqa: ARG002
        """Know no word: nobody can look into the vocabulary."""
        return False

    async def close(self) -> None:
        """Give up what is under way; the backend is its owner's."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _vector(self, text: str) -> "asyncio.Future[Vector]":
        loop = asyncio.get_running_loop()
        if text in self._kept:
            self._kept.move_to_end(text)
            known: asyncio.Future[Vector] = loop.create_future()
            known.set_result(self._kept[text])
            return known
        if text not in self._asked:
            future = self._asked[text] = loop.create_future()
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._waiting.append(text)
            loop.call_soon(self._send)
        return self._asked[text]

    def _send(self) -> None:
        while self._waiting and len(self._tasks) < MAX_IN_FLIGHT:
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            task = asyncio.create_task(self._answer(batch))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self._send()

    async def _answer(self, batch: list[str]) -> None:
        """Settle the futures of a batch; a text that spoils it is found by asking one by one."""
        try:
            rows = await self._rows(batch)
        except TextTooLong as error:
            if len(batch) > 1:
                for text in batch:
                    await self._answer([text])
            else:
                self._settle(batch[0], error)
        except EmbedderFailed as error:
            for text in batch:
                self._settle(text, error)
        except BaseException:
            for text in batch:
                self._settle(text, EmbedderFailed("the embedder is closed"))
            raise
        else:
            for text, row in zip(batch, rows, strict=True):
                self._settle(text, row)

    async def _rows(self, batch: list[str]) -> list[Vector]:
        try:
            found = await self._backend.embed(
                _work(self._model, [f"{self._prompt}{text}" for text in batch])
            )
        except UpstreamStatus as error:
            if error.status in TOO_LARGE:
                longest = max(len(text) for text in batch) // BYTES_A_TOKEN
                raise TextTooLong(f"{longest} tokens", self.window_tokens) from error
            raise EmbedderFailed(_said(error)) from error
        except (BackendError, BadRequest) as error:
            raise EmbedderFailed(error.message) from error
        return [self._unit(each.vector) for each in found]

    def _unit(self, data: bytes) -> Vector:
        vector = np.frombuffer(data, "<f4").astype(np.float32)
        length = float(np.linalg.norm(vector))
        if len(vector) != self.dim or not length:
            raise EmbedderFailed(f"a vector of {len(vector)} numbers, length {length:g}")
        return vector / np.float32(length)

    def _settle(self, text: str, result: Vector | Exception) -> None:
        future = self._asked.pop(text, None)
        if isinstance(result, Exception):
            if future is not None and not future.done():
                future.set_exception(result)
            return
        self._kept[text] = result
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        if future is not None and not future.done():
            future.set_result(result)


def _work(model: str, texts: Sequence[str]) -> EmbedWork:
    names = [f"input[{at}]" for at in range(len(texts))]
    return EmbedWork("embedder", model, texts, names, {})


def _said(error: BackendError | BadRequest) -> str:
    """Return what an upstream's refusal says, else the error's own message."""
    if isinstance(error, UpstreamStatus):
        return f"{error.status} {error.body.get('error', {}).get('message', '')}"
    return error.message
