"""A semantic cache over memory stores, a fake embedder and a clock, all in reach."""

from typing import Any

from semantic_layer.cache import SemanticCache
from semantic_layer.outcome import Bypass, Hit, Miss
from semantic_layer.request import CacheControl, CacheQuery
from tests.fakes.broken_stores import BreakableIndex, BreakableStore
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.stores import Clock

ANY = CacheControl()


class House:
    """A cache with its parts in reach."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.embedder = FakeEmbedder()
        self.store = BreakableStore(clock=self.clock)
        self.index = BreakableIndex(self.embedder.dim)
        self.stages: list[str] = []
        self.failures: list[str] = []
        self.verifier = options.get("verifier")
        self.cache = SemanticCache(
            store=self.store,
            index=self.index,
            embedder=options.pop("embedder", self.embedder),
            clock=self.clock,
            observe=lambda stage, seconds: self.stages.append(stage),
            on_failure=self.failures.append,
            **options,
        )

    async def ask(
        self, text: str, control: CacheControl = ANY, **fields: Any
    ) -> Hit | Miss | Bypass:
        return await self.cache.lookup(query(text, **fields), control)

    async def seed(
        self, text: str, control: CacheControl = ANY, *, cut: bool = False, **fields: Any
    ) -> str | None:
        outcome = await self.ask(text, control, **fields)
        assert isinstance(outcome, Miss)
        return await self.cache.store(
            query(text, **fields),
            control,
            outcome,
            f"A({text})".encode(),
            answer_text=f"A({text})",
            exact_only=cut,
        )


def query(text: str, *, tenant: str = "t", **fields: Any) -> CacheQuery:
    request = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
    return CacheQuery(tenant, "m", "f", request)


def layer(outcome: Hit | Miss | Bypass) -> str:
    return outcome.layer if isinstance(outcome, Hit) else type(outcome).__name__.lower()
