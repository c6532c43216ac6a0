"""Embedders for unit tests: near-identical texts get near-identical vectors, nothing is learnt."""

import asyncio
from collections.abc import Sequence

import numpy as np

from semantic_layer.errors import EmbedderFailed, TextTooLong
from semantic_layer.models.embedding import Vectors


class FakeEmbedder:
    """Counts letters: rewordings of one question are close. ``down`` makes each call fail."""

    fingerprint = "fake-letters"
    dim = 64

    def __init__(self, window_tokens: int = 200) -> None:
        self.window_tokens = window_tokens
        self.down = False
        self.hold: asyncio.Event | None = None
        self.num_texts = 0

    def knows_word(self, word: str) -> bool:
        return True

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.hold is not None:
            await self.hold.wait()
        if self.down:
            raise EmbedderFailed("the fake is down")
        self.num_texts += len(texts)
        return np.stack([self._embed(text) for text in texts])

    async def close(self) -> None:
        return

    def _embed(self, text: str) -> Vectors:
        num_tokens = len(text.split())
        if num_tokens > self.window_tokens:
            raise TextTooLong(f"{num_tokens} tokens", self.window_tokens)
        counts = np.ones(self.dim, np.float32)
        for letter in text.casefold():
            counts[ord(letter) % self.dim] += 1
        return counts / np.float32(np.linalg.norm(counts))


class FakeEncoder:
    """An encoder that notes how large its batches are."""

    fingerprint = "fake-encoder"
    dim = 4
    window_tokens = 5

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.broken = False

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def knows_word(self, word: str) -> bool:
        return True

    def encode(self, texts: Sequence[str]) -> Vectors:
        if self.broken:
            raise RuntimeError("no memory")
        self.batches.append(len(texts))
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[len(text) % self.dim] = 1
        return rows
