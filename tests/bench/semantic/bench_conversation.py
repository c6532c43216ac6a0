"""Measure hits in chats: which answers are served to another chat, how many wrongly, at what cost.

usage: python -m tests.bench.semantic.bench_conversation [--sets FOLDER] [--only NAME] [--budget B]

Each pair is stored and asked through a whole cache with the bundled models and the thresholds a
gateway begins with for the budget, both ways round; a pair counts as served when either way serves
it. Intervals: Clopper-Pearson, 95%. Beside it, the rules of peers, at the best threshold for the
very set: the last message alone, and the whole chat as one text, by the same embedder. Rules and
models were fitted on the odd groups written for Strata, what a score is worth on the even ones; the
published set is measured only.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    CacheControl,
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
    Verifier,
    load_encoder,
    load_verifier,
)
from semantic_layer.models.bert_encoder import BertEncoder
from tests.bench.bench_semantic import interval
from tests.bench.fit_scorer import embed
from tests.bench.semantic.chats import ChatPair, Message, authored, is_fitting, published

ANY = CacheControl()
LONG = 70  # messages
BUDGET = 0.01
OpenCache = Callable[[], SemanticCache]


def query(chat: Sequence[Message]) -> CacheQuery:
    return CacheQuery("t", "m", "f", {"model": "m", "messages": [dict(m) for m in chat]})


def cache_of(
    embedder: ThreadedEmbedder,
    scorer: Scorer,
    verifier: Verifier,
    budget: float = BUDGET,
    **more: Any,
) -> SemanticCache:
    """Return an empty cache that decides as a gateway does that has learnt nothing yet.

    ``more`` are other arguments of `SemanticCache`: without ``detect`` intents are told by words.
    """
    cache = SemanticCache(
        store=MemoryResponseStore(),
        index=MemoryVectorIndex(embedder.dim),
        embedder=embedder,
        scorer=scorer,
        verifier=verifier,
        **more,
    )
    pooled = PooledThresholds.matching(cache.scorer)
    cache.retune(Thresholds.within(budget, pooled=pooled), {})
    return cache


async def served(cache: SemanticCache, stored: Sequence[Message], asked: Sequence[Message]) -> str:
    """Say "" when the stored chat's answer is served to the asked one, else why not."""
    miss = await cache.lookup(query(stored), ANY)
    if isinstance(miss, Miss):
        await cache.store(query(stored), ANY, miss, b"A", answer_text="A")
    found = await cache.inspect(query(asked), ANY)
    reasons = [r for c in found.judgement.candidates for r in c.reasons if r.verdict != "pass"]
    if found.outcome in {"semantic", "exact"}:
        return ""
    return "; ".join(f"{r.check}: {r.detail}" for r in reasons) or "not found"


def share(name: str, hits: int, tries: int) -> str:
    low, high = interval(hits, tries)
    return f"{name} {hits:3}/{tries:<3} {hits / max(1, tries):6.1%} [{low:.1%}, {high:.1%}]"


async def measure(
    name: str, pairs: list[ChatPair], open_cache: OpenCache, *, show: bool
) -> dict[str, Any]:
    """Serve every pair both ways; print the shares by kind."""
    counts: dict[str, list[int]] = defaultdict(list)
    for pair in pairs:
        whys = []
        for stored, asked in ((pair.one, pair.other), (pair.other, pair.one)):
            cache = open_cache()
            whys.append(await served(cache, stored, asked))
        hit = "" in whys
        counts[pair.kind].append(hit)
        if show and hit != pair.same:
            print(f"  {pair.pair_id} {pair.kind}: {whys}")
    same = [h for p, h in zip(pairs, _flat(pairs, counts), strict=True) if p.same]
    traps = [h for p, h in zip(pairs, _flat(pairs, counts), strict=True) if not p.same]
    print(
        f"{name:10}", share("same", sum(same), len(same)), share("  traps", sum(traps), len(traps))
    )
    for kind, hits in sorted(counts.items()):
        print(f"   {kind:28}", share("", sum(hits), len(hits)))
    return {"set": name, "same": [sum(same), len(same)], "traps": [sum(traps), len(traps)]}


def _flat(pairs: list[ChatPair], counts: dict[str, list[int]]) -> Iterator[int]:
    left = {kind: iter(hits) for kind, hits in counts.items()}
    return (next(left[pair.kind]) for pair in pairs)


def peers(pairs: list[ChatPair], encoder: BertEncoder) -> None:
    """Print what cosine thresholds serve: of the last messages, and of whole chats."""
    for rule, text_of in (
        ("last message", lambda chat: chat[-1]["content"]),
        ("whole chat", lambda chat: "\n".join(m["content"] for m in chat)[-4000:]),
    ):
        texts = [(text_of(pair.one), text_of(pair.other)) for pair in pairs]
        vectors = embed([text for both in texts for text in both], encoder)
        cosines = [float(vectors[a] @ vectors[b]) for a, b in texts]
        traps = sorted((c for c, p in zip(cosines, pairs, strict=True) if not p.same), reverse=True)
        same = [c for c, p in zip(cosines, pairs, strict=True) if p.same]
        for allowed in (0.02, 0.05):
            level = traps[int(allowed * len(traps))]
            hits = sum(c > level for c in same)
            print(f"   peers, {rule:12} at {allowed:.0%} of traps:", share("same", hits, len(same)))


async def times(open_cache: OpenCache) -> dict[str, float]:
    """Return the median milliseconds of a look-up, of one message and of a chat of 70."""
    cache = open_cache()
    medians = {}
    for name, num in (("one message", 1), (f"{LONG} messages", LONG + 1)):
        spent = []
        for i in range(30):
            chat = [
                {"role": "assistant" if k % 2 else "user", "content": _line(k, i)}
                for k in range(num - 1)
            ]
            last = {"role": "user", "content": f"Can I take a bag number {i} with it then?"}
            stored, asked = [*chat, last], [*chat[1:], last]
            if not num % 2:
                asked = stored
            miss = await cache.lookup(query(stored), ANY)
            assert isinstance(miss, Miss)
            await cache.store(query(stored), ANY, miss, b"A", answer_text="A")
            started = time.perf_counter()
            await cache.lookup(query(asked), ANY)
            spent.append(1e3 * (time.perf_counter() - started))
        medians[name] = statistics.median(spent)
    return medians


def _line(place: int, number: int) -> str:
    return f"Message {place} of chat {number} says that parcel {place} weighs {number} kg."


async def main(options: argparse.Namespace) -> None:
    """Measure all sets and the cost."""
    base = prepare(default_models_dir(os.environ)).embedder_path
    encoder = load_encoder(base)
    embedder = ThreadedEmbedder(encoder)
    scorer = await Scorer.matching(embedder)
    verifier = ThreadedVerifier(load_verifier("bundled", base))

    def open_cache() -> SemanticCache:
        return cache_of(embedder, scorer, verifier, options.budget)

    own = authored()
    groups = {
        "odd": [pair for pair in own if is_fitting(pair)],
        "even": [pair for pair in own if not is_fitting(pair)],
    }
    path = options.sets / "conversation_pairs_dev.jsonl"
    if path.exists():
        groups["published"] = published(path)
    groups = {name: pairs for name, pairs in groups.items() if options.only in {None, name}}
    lines = [await measure(n, p, open_cache, show=options.show) for n, p in groups.items()]
    for name, pairs in groups.items():
        print(name)
        peers(pairs, encoder)
    spent = await times(open_cache)
    print("p50 ms of a look-up:", {name: round(ms, 1) for name, ms in spent.items()})
    await verifier.close()
    await embedder.close()
    if options.json:
        print(json.dumps({"sets": lines, "look_up_ms": spent}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("STRATA_BENCH", "../shared/data/semantic")
    parser.add_argument("--sets", type=Path, default=Path(default))
    parser.add_argument("--show", action="store_true", help="name the pairs decided wrongly")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=("odd", "even", "published"))
    parser.add_argument("--budget", type=float, default=BUDGET)
    asyncio.run(main(parser.parse_args()))
