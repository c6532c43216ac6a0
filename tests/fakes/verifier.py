"""A verifier for unit tests: scores by a table, counts what it is asked, breaks on demand."""

import asyncio
from collections.abc import Mapping, Sequence

from semantic_layer.errors import VerifierFailed
from semantic_layer.models.verifier import Pair


class FakeVerifier:
    """Scores a stored text by ``table``, others with 0; texts past ``most_words`` do not fit."""

    fingerprint = "fake-table"
    asks_model: bool = False

    def __init__(self, table: Mapping[str, float] | None = None, *, most_words: int = 50) -> None:
        self.table = dict(table or {})
        self.most_words = most_words
        self.down = False
        self.hold: asyncio.Event | None = None
        self.asked: list[list[str]] = []

    def fits(self, text: str) -> bool:
        return len(text.split()) <= self.most_words

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        self.asked.append([stored for _, stored in pairs])
        if self.hold is not None:
            await self.hold.wait()
        if self.down:
            raise VerifierFailed("the fake is down")
        return [self.table.get(stored, 0.0) for _, stored in pairs]

    async def close(self) -> None:
        return
