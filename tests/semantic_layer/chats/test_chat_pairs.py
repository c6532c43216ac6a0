"""Pairs of chats through the whole cache, each on the side where it belongs.

``refused`` ones have another answer, ``served`` ones the same. ``open`` ones are decided wrongly so
far, or so barely that another machine may not: ``same`` says what they would be. A chat is texts,
user and assistant in turn, whole messages as they are, and ``sides``: a range of questions on the
side. Written for Strata, Apache-2.0.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from semantic_layer import (
    CacheControl,
    CachePolicy,
    CacheQuery,
    MemoryResponseStore,
    MemoryVectorIndex,
    Miss,
    PooledThresholds,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    ThreadedVerifier,
    Thresholds,
    load_encoder,
    load_verifier,
)
from tests.semantic_layer.chats.side_questions import SIDE_QUESTIONS

ANY = CacheControl()
BUDGET = 0.01
Message = dict[str, Any]
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("chat_pairs.jsonl").read_text("utf-8").splitlines()
]


def messages(items: Sequence[Any]) -> list[Message]:
    """Write a chat of the file out."""
    said: list[Message] = []
    for item in _flat(items):
        spoken = sum(m["role"] in {"user", "assistant"} and bool(m["content"]) for m in said)
        role = "assistant" if spoken % 2 else "user"
        said.append(item if isinstance(item, dict) else {"role": role, "content": item})
    return said


def _flat(items: Sequence[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, dict) and "sides" in item:
            start, end = item["sides"]
            yield "Noted." if start < 20 else "好的。"
            for asked, answered in SIDE_QUESTIONS[start:end]:
                yield from (asked, answered)
        else:
            yield item


def query(chat: Sequence[Message]) -> CacheQuery:
    """Ask as a client does."""
    return CacheQuery("t", "m", "f", {"model": "m", "messages": list(chat)})


async def is_served(cache: SemanticCache, stored: CacheQuery, asked: CacheQuery) -> bool:
    """Say whether the stored chat's answer is served to the asked one."""
    miss = await cache.lookup(stored, ANY)
    assert isinstance(miss, Miss)
    await cache.store(stored, ANY, miss, b"A", answer_text="A")
    return (await cache.inspect(asked, ANY)).outcome == "semantic"


async def served_of(folder: Path) -> set[int]:
    """Return the places of the pairs that are served either way round, at defaults."""
    embedder = ThreadedEmbedder(load_encoder(folder))
    verifier = ThreadedVerifier(load_verifier("bundled", folder))
    scorer = await Scorer.matching(embedder)
    served = set()
    try:
        for i, row in enumerate(ROWS):
            one, other = (query(messages(row[side])) for side in ("one", "other"))
            for stored, asked in ((one, other), (other, one)):
                cache = SemanticCache(
                    store=MemoryResponseStore(),
                    index=MemoryVectorIndex(embedder.dim),
                    embedder=embedder,
                    scorer=scorer,
                    verifier=verifier,
                    policy=CachePolicy(verify_deadline_s=60.0, embed_deadline_s=60.0),
                )
                pooled = PooledThresholds.matching(cache.scorer)
                assert pooled is not None, "thresholds of other models"
                cache.retune(Thresholds.within(BUDGET, pooled=pooled), {})
                if await is_served(cache, stored, asked):
                    served.add(i)
    finally:
        await verifier.close()
        await embedder.close()
    return served


@pytest.fixture(scope="module")
def served(bundled_embedder: Path) -> set[int]:
    return asyncio.run(served_of(bundled_embedder))


def on(side: str) -> list[int]:
    """Return the places of the pairs of a side."""
    return [i for i, row in enumerate(ROWS) if row["side"] == side]


def test_no_chat_is_served_when_its_answer_differs(served: set[int]) -> None:
    """Another history, choice, correction, system prompt or tool result makes a miss."""
    assert [ROWS[i] for i in on("refused") if i in served] == []


def test_every_chat_is_served_when_only_its_small_talk_or_wording_differs(served: set[int]) -> None:
    """What an answer cannot turn on costs no hit."""
    assert [ROWS[i] for i in on("served") if i not in served] == []
