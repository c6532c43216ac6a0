"""Chats through the whole cache: what meets, what never does, and why."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from semantic_layer import (
    CacheControl,
    CacheQuery,
    MemoryResponseStore,
    MemoryVectorIndex,
    Miss,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    load_encoder,
)
from semantic_layer.chats.conversation import Turn, split

ANY = CacheControl()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder(bundled_embedder: Path) -> AsyncIterator[ThreadedEmbedder]:
    found = ThreadedEmbedder(load_encoder(bundled_embedder))
    yield found
    await found.close()


def query(messages: list[dict[str, Any]], **fields: Any) -> CacheQuery:
    return CacheQuery("t", "m", "f", {"model": "m", "messages": messages, **fields})


def said(*texts: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)
    ]


async def outcome_of(
    embedder: ThreadedEmbedder, stored: CacheQuery, asked: CacheQuery
) -> tuple[str, str]:
    """Store one chat's answer and ask with another; tell the outcome and its reasons in words."""
    cache = SemanticCache(
        store=MemoryResponseStore(),
        index=MemoryVectorIndex(embedder.dim),
        embedder=embedder,
        scorer=await Scorer.matching(embedder),
    )
    miss = await cache.lookup(stored, ANY)
    assert isinstance(miss, Miss)
    await cache.store(stored, ANY, miss, b"A", answer_text="A")
    found = await cache.inspect(asked, ANY)
    reasons = [
        *found.judgement.reasons,
        *(r for c in found.judgement.candidates for r in c.reasons),
    ]
    return found.outcome, "; ".join(f"{r.check}: {r.detail}" for r in reasons)


MEETING = [
    (
        said("Do you have a pool?", "Yes, 20 m.", "When does the Bramley gym open on Sundays?"),
        said("Can I freeze it?", "For 3 months.", "when does the Bramley gym open on sundays"),
        "conversation: stands alone",
    ),
    (
        said("I bought the Lite ticket.", "Great. How can I help?", "Can I take a bag with it?"),
        said("Hi! I bought the Lite ticket.", "Hello! How can I help?", "can I take a bag with it"),
        "history: refers to the same (pronoun: it)",
    ),
    (
        said("my modem is slow", "Shall I restart it now?", "yes"),
        said("Hello! my modem is slow", "Shall I restart it now?", "sure, go ahead"),
        "history: refers to the same (reply: yes)",
    ),
    (
        said("I bought the Lite ticket.", "Great. How can I help?", "Can I take a bag with it?"),
        said(
            "I bought the Lite ticket. My neighbour recommended you, she never stops talking!",
            "Aww, that's so kind of her! Great. How can I help?",
            "can I take a bag with it",
        ),
        "history: refers to the same (pronoun: it)",
    ),
    (
        said("法国的首都是哪里？"),
        said("你好", "您好！", "法国的首都是哪里？"),
        "conversation: stands alone",
    ),
]  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("stored", "asked", "reason"), MEETING)
async def test_chat_gets_the_answer_of_another_when_the_history_fits(
    embedder: ThreadedEmbedder,
    stored: list[dict[str, Any]],
    asked: list[dict[str, Any]],
    reason: str,
) -> None:
    """A hit fits the whole chat, and says what of it was judged."""
    outcome, reasons = await outcome_of(embedder, query(stored), query(asked))
    assert outcome == "semantic", reasons
    assert reason in reasons


IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
CALL = {"id": "c", "type": "function", "function": {"name": "stock", "arguments": "{}"}}
BASE = said("I bought the Lite ticket.", "Great. How can I help?", "Can I take a bag with it?")


def with_tool(result: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "How many kettles are in stock?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": result},
        {"role": "user", "content": "Is there a kettle left for my sister in Leeds?"},
    ]


APART = [
    (BASE, [{"role": "system", "content": "You sell tickets."}, *BASE]),
    (BASE, [*BASE[:1], {"role": "system", "content": "Bags are free today."}, *BASE[1:]]),
    (BASE, [{**BASE[0], "name": "Ann"}, *BASE[1:]]),
    (BASE, [BASE[0], {**BASE[1], "refusal": "no"}, BASE[2]]),
    (BASE, [{"role": "user", "content": [IMAGE]}, *BASE[1:]]),
    (BASE, [{**BASE[0], "role": "developer"}, *BASE[1:]]),
    (with_tool("17"), with_tool("0")),
    (with_tool("17"), with_tool("17")[-1:]),
    (BASE, [*said("I bought the Plus ticket."), *BASE[1:]]),
    (BASE, [*said("I bought the Lite ticket. I'm also pregnant."), *BASE[1:]]),
    (BASE, BASE[-1:]),
]  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("stored", "asked"), APART)
async def test_chat_misses_when_anything_that_matters_differs(
    embedder: ThreadedEmbedder, stored: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> None:
    """Instructions, names, tool results, images and what the message refers to must be equal."""
    for one, other in ((stored, asked), (asked, stored)):
        outcome, _ = await outcome_of(embedder, query(one), query(other))
        assert outcome == "miss"


@pytest.mark.asyncio(loop_scope="module")
async def test_chat_with_tools_hits_when_the_results_are_equal(embedder: ThreadedEmbedder) -> None:
    """All up to the last tool result must be equal; after it, the last message may be reworded."""
    reworded = with_tool("17")
    reworded[-1] = {"role": "user", "content": "is there a kettle left for my sister in Leeds"}
    outcome, reasons = await outcome_of(embedder, query(with_tool("17")), query(reworded))
    assert outcome == "semantic", reasons


def test_history_is_exact_when_the_query_is_named() -> None:
    """A named query does not tell which pages earlier messages carry, so they stay in the scope."""
    turn = split(query(BASE), CacheControl(query_text="bags?"))
    assert isinstance(turn, Turn)
    assert turn.frame[:-1] == BASE[:-1]
    assert turn.chat.history == ()


def test_history_may_vary_when_documents_are_named_beside_the_query() -> None:
    """What the answer rests on is named; what was chatted before is judged as in any chat."""
    turn = split(query(BASE), CacheControl(query_text="bags?", context=("d1",)))
    assert isinstance(turn, Turn)
    assert len(turn.frame) == 1
    assert turn.chat.history
