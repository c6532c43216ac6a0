"""The local embedding model under load: little at once, and everyone gets a turn."""

import asyncio

import pytest

from gateway.backends.base import ModelInfo
from gateway.backends.embeddings import MAX_BYTES_UNDER_WAY, EmbedWork, LocalEmbeddings
from gateway.errors import ContextTooLong
from semantic_layer import ThreadedEmbedder
from semantic_layer.models.embedding import Embedded
from tests.fakes.embedder import FakeEncoder

LONG = "pebble" * 20  # bytes; a few of them fill the room


class Watched(ThreadedEmbedder):
    """Notes how much text was under way at most, and in which order texts came."""

    def __init__(self) -> None:
        super().__init__(FakeEncoder())
        self.order: list[str] = []
        self.most_bytes = self._bytes = 0

    async def embed_counted(self, texts: object) -> Embedded:
        [text] = texts  # type: ignore[misc]
        self.order.append(text)
        self._bytes += len(text)
        self.most_bytes = max(self.most_bytes, self._bytes)
        try:
            return await super().embed_counted([text])
        finally:
            self._bytes -= len(text)


def work(name: str, *texts: str) -> EmbedWork:
    return EmbedWork(name, "m", texts, [f"input[{at}]" for at in range(len(texts))], {})


async def test_little_is_under_way_and_a_small_request_waits_for_little_when_a_large_one_runs() -> (
    None
):
    """A look-up finds at most one window of text before it; a late text is soon served."""
    embedder = Watched()

    async def opened() -> ThreadedEmbedder:
        return embedder

    backend = LocalEmbeddings(ModelInfo("m", "strata", "f"), opened)
    large = asyncio.create_task(backend.embed(work("large", *[LONG] * 200)))
    while len(embedder.order) < 2 and not large.done():
        await asyncio.sleep(0)
    small = await backend.embed(work("small", "late"))
    assert len(small) == 1
    assert embedder.order.index("late") < 60
    assert len(await large) == 200
    assert embedder.most_bytes <= MAX_BYTES_UNDER_WAY
    await embedder.close()


async def test_others_are_given_up_when_one_text_is_too_long() -> None:
    """The error names the input, and the room is free again for the next request."""
    embedder = Watched()

    async def opened() -> ThreadedEmbedder:
        return embedder

    backend = LocalEmbeddings(ModelInfo("m", "strata", "f"), opened)
    with pytest.raises(ContextTooLong) as refused:
        await backend.embed(work("a", LONG, "one two three four five six", *[LONG] * 40))
    assert refused.value.param == "input[1]"
    async with asyncio.timeout(30):
        assert len(await backend.embed(work("b", *[LONG] * 40))) == 40
    await embedder.close()
