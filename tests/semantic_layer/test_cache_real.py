"""The whole decision over real parts: bundled embedder, Valkey process, Qdrant engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from semantic_layer import (
    CacheControl,
    CacheQuery,
    Hit,
    MemoryResponseStore,
    MemoryVectorIndex,
    Miss,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    Valkey,
    collection_name,
    load_encoder,
    open_response_store,
    open_vector_index,
)
from tests.semantic_layer.pairs import both_ways

ANY = CacheControl()

# Kinds after field cases S01, S03, S05, S07: (seed, probe), asked in both orders.
HITS = [
    ("What is the capital of France?", "What's France's capital city?"),
    ("What is the capital of France?", "Which city is the capital of France?"),
    ("法国的首都是哪里？", "请问法国首都在哪儿"),
    (
        "How do I reset the password on my home router?",
        "What's the way to reset my home router's password?",
    ),
    (
        "How do I reset the password on my home router?",
        "how do i reset the password on my home router",
    ),
    ("What is the boiling point of ethanol?", "At what temperature does ethanol boil?"),
    (
        "How do I turn on automatic updates in Firefox?",
        "How can I switch on automatic updates in Firefox?",
    ),
    ("Convert 15 miles to kilometers.", "What is 15 miles in kilometers?"),
    ("Convert 15 miles to kilometers.", "Convert fifteen miles to kilometers."),
    ("Is Jupiter larger than Saturn?", "Is Jupiter bigger than Saturn?"),
    ("怎么重置家里路由器的密码？", "家里路由器的密码如何重置"),
]
MISSES = [
    ("What is the capital of France?", "Which is the largest city of France?"),
    ("What is the capital of France?", "What is not the capital of France?"),
    ("What is the capital of France?", "What is the capital of Germany?"),
    ("法国的首都是哪里？", "德国的首都是哪里？"),
    ("法国的首都是哪里？", "哪里不是法国的首都？"),
    ("How do I reset the password on my home router?", "How do I reset my home router to factory settings?"),  # noqa: E501
    ("Why do onions make people cry?", "Why do onions sprout in the cupboard?"),
    ("How do I turn on automatic updates in Firefox?", "How do I turn off automatic updates in Firefox?"),  # noqa: E501
    ("Is it legal to record a call with consent?", "Is it legal to record a call without consent?"),
    ("What changed in Python 3.11?", "What changed in Python 3.12?"),
    ("What is the function of a capacitor?", "What is the function of a transistor?"),
    ("What is the function of a valve?", "What is the function of a piston?"),
    ("Translate 'good night' from Spanish into German.", "Translate 'good night' from German into Spanish."),  # noqa: E501
    ("Proofread my essay outline.", "Proofread your essay outline."),
    ("把人民币换成日元怎么算？", "把日元换成人民币怎么算？"),
    ("How do I reset my password?", "How do I reset my colleague's password?"),
]  # fmt: skip


def query(text: str, *, system: str = "") -> CacheQuery:
    messages = [{"role": "user", "content": text}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return CacheQuery("t", "m", "f", {"model": "m", "messages": messages})


async def seed(cache: SemanticCache, text: str, *, system: str = "") -> None:
    outcome = await cache.lookup(query(text, system=system), ANY)
    assert isinstance(outcome, Miss)
    stored = await cache.store(
        query(text, system=system), ANY, outcome, b"answer", answer_text="answer"
    )
    assert stored is not None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder(bundled_embedder: Path) -> AsyncIterator[ThreadedEmbedder]:
    found = ThreadedEmbedder(load_encoder(bundled_embedder))
    yield found
    await found.close()


async def fresh(embedder: ThreadedEmbedder) -> SemanticCache:
    return SemanticCache(
        store=MemoryResponseStore(),
        index=MemoryVectorIndex(embedder.dim),
        embedder=embedder,
        scorer=await Scorer.matching(embedder),
    )


ANSWERS = [
    ("The capital of France is Paris.", "Paris is the capital of France.", True),
    ("I don't know.", "I do not know.", True),
    ("Mix flour and water, then bake.", "Mix water and flour, then bake.", True),
    ("The capital of France is Paris.", "The capital of France is Berlin.", False),
    ("Press the red button.", "Press the green button.", False),
    ("It has 12 rooms.", "It has 21 rooms.", False),
    ("Jupiter is larger than Saturn.", "Saturn is larger than Jupiter.", None),
    ("Use aspirin for the pain.", "Use ibuprofen for the pain.", None),
    ("The answer is mitosis.", "The answer is meiosis.", None),
    ("先洗手再吃饭。", "先吃饭再洗手。", None),
    ("首都是柏林。", "首都是巴黎。", None),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("one", "other", "same"), ANSWERS)
async def test_answers_are_compared_honestly(
    embedder: ThreadedEmbedder, one: str, other: str, same: bool | None
) -> None:
    """The same, another, or not to be told: never the same when they say something else."""
    cache = await fresh(embedder)
    found = [await cache.same_answer(one, other), await cache.same_answer(other, one)]
    assert [each.same for each in found] == [same, same], found


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("one", "other"), both_ways(HITS))
async def test_rewording_hits_when_the_answer_is_the_same(
    embedder: ThreadedEmbedder, one: str, other: str
) -> None:
    """Rewordings are served at the default thresholds."""
    cache = await fresh(embedder)
    await seed(cache, one)
    outcome = await cache.lookup(query(other), ANY)
    assert isinstance(outcome, Hit), outcome.judgement if isinstance(outcome, Miss) else outcome


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("one", "other"), both_ways(MISSES))
async def test_trap_misses_when_the_answer_differs(
    embedder: ThreadedEmbedder, one: str, other: str
) -> None:
    """Traps are generated anew, and the trace names the score and a reason."""
    cache = await fresh(embedder)
    await seed(cache, one)
    outcome = await cache.lookup(query(other), ANY)
    assert isinstance(outcome, Miss)
    (candidate,) = outcome.judgement.candidates
    assert any(reason.verdict == "veto" for reason in candidate.reasons)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("line", "one", "other"),
    [
        ("Rule: keep every reply short, polite and free of jargon. ", "name one metal.", "explain how to boil an egg."),  # noqa: E501
        ("规则：回答要简短、礼貌、不用术语。", "问题：说出一种金属。", "问题：怎么煮鸡蛋？"),
    ],
)  # fmt: skip
async def test_long_texts_never_meet_when_only_their_ends_differ(
    embedder: ThreadedEmbedder, line: str, one: str, other: str
) -> None:
    """Past the window nothing is cut into a vector; the same text twice is still exact (S09)."""
    cache = await fresh(embedder)
    prefix = line * 120
    await seed(cache, prefix + one)
    assert (await cache.counts())["qdrant"] == 0
    outcome = await cache.lookup(query(prefix + other), ANY)
    assert isinstance(outcome, Miss)
    assert "window" in [reason.check for reason in outcome.judgement.reasons]
    again = await cache.lookup(query(prefix + one), ANY)
    assert isinstance(again, Hit)
    assert again.layer == "exact"
    await seed(cache, one, system=prefix)
    assert isinstance(await cache.lookup(query(other, system=prefix), ANY), Miss)


@pytest.mark.asyncio(loop_scope="module")
async def test_hits_survive_when_the_stores_are_closed_and_opened(
    bundled_embedder: Path, tmp_path: Path
) -> None:
    """Over Valkey and the Qdrant engine, exact and semantic hits outlive a restart."""

    async def opened() -> tuple[SemanticCache, Valkey]:
        embedder = ThreadedEmbedder(load_encoder(bundled_embedder))
        valkey = await Valkey.start(tmp_path / "valkey")
        index = open_vector_index(
            "embedded",
            folder=tmp_path / "qdrant",
            collection=collection_name(embedder.fingerprint, embedder.dim),
            dim=embedder.dim,
        )
        cache = SemanticCache(
            store=open_response_store(valkey.url),
            index=index,
            embedder=embedder,
            scorer=await Scorer.matching(embedder),
        )
        return cache, valkey

    one, other = HITS[0]
    cache, valkey = await opened()
    await seed(cache, one)
    await cache.close()
    await valkey.stop()
    cache, valkey = await opened()
    exact = await cache.lookup(query(one), ANY)
    near = await cache.lookup(query(other), ANY)
    counts = await cache.counts()
    await cache.close()
    await valkey.stop()
    assert isinstance(exact, Hit)
    assert isinstance(near, Hit)
    assert (exact.layer, near.layer) == ("exact", "semantic")
    assert near.entry.answer == b"answer"
    assert counts == {"redis": 1, "qdrant": 1}
