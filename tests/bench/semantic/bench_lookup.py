"""What a semantic look-up costs among many entries: embedding, search, guards and verifier.

usage: python -m tests.bench.semantic.bench_lookup [--sets FOLDER] [--entries N...] [--asked N]

Over the embedded index and a store in memory. Half of the asked texts are rewordings of stored ones
(Quora pairs labelled the same), half are other questions; beside 500 real texts the index holds
vectors made of two real ones each. Prints p50 and p95 in milliseconds, whole and by stage.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    CacheControl,
    CachePolicy,
    CacheQuery,
    Entry,
    MemoryResponseStore,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    ThreadedVerifier,
    VectorIndex,
    load_verifier,
    open_vector_index,
)
from semantic_layer.bert_encoder import BertEncoder
from semantic_layer.vector_index.base import Point
from tests.bench import pair_sets
from tests.bench.fit_scorer import embed

REAL = 500
BATCH = 1_000
FOREVER = 4e9


def query(text: str) -> CacheQuery:
    """Return the request that asks a text."""
    return CacheQuery("t", "m", "f", {"messages": [{"role": "user", "content": text}]})


async def fill(
    cache: SemanticCache, index: VectorIndex, store: MemoryResponseStore, texts: Sequence[str],
    encoder: BertEncoder, num: int,
) -> None:  # fmt: skip
    """Store the real texts, then as many made entries as are wanted beside them."""
    for text in texts:
        await cache.insert(query(text), CacheControl(), b"x", answer_text="x")
    miss = await cache.lookup(query("Which scope is this?"), CacheControl())
    scope = getattr(miss, "scope", None)
    assert scope is not None, "the request can be found by likeness"
    known = embed(list(texts), encoder)
    vectors = np.vstack([known[text] for text in texts])
    rng = np.random.default_rng(0)
    for start in range(len(texts), num, BATCH):
        size = min(BATCH, num - start)
        one, other = rng.integers(len(texts), size=(2, size))
        made = vectors[one] + vectors[other]
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        names = [f"{start + i:064x}" for i in range(size)]
        await index.upsert(
            [
                Point(name, "t", scope, "factual", FOREVER, (), vector.astype(np.float32))
                for name, vector in zip(names, made, strict=True)
            ]
        )
        for name, a, b in zip(names, one, other, strict=True):
            await store.put(_entry(name, scope, f"{texts[a]} {texts[b]}"))


async def measure(
    options: argparse.Namespace, num: int, encoder: BertEncoder, folder: Path, base: Path
) -> str:
    """Return one line: look-ups among ``num`` entries."""
    pairs = [p for p in pair_sets.quora_held_out(options.sets) if p.same][:REAL]
    texts = list(dict.fromkeys(p.one for p in pairs))
    asked = [p.other for p in pairs[: options.asked // 2]]
    asked += [p.other for p in pair_sets.quora_train(options.sets)[: options.asked // 2]]
    embedder = ThreadedEmbedder(encoder)
    spent: dict[str, list[float]] = defaultdict(list)
    store = MemoryResponseStore()
    index = open_vector_index("embedded", folder=folder, collection=str(num), dim=embedder.dim)
    cache = SemanticCache(
        store=store,
        index=index,
        embedder=embedder,
        verifier=ThreadedVerifier(load_verifier("bundled", base)),
        scorer=await Scorer.matching(embedder),
        policy=CachePolicy(index_deadline_s=30, embed_deadline_s=30, verify_deadline_s=30),
        observe=lambda stage, seconds: spent[stage].append(1e3 * seconds),
    )
    await fill(cache, index, store, texts, encoder, num)
    for text in asked[:20]:
        await cache.lookup(query(f"{text} Now"), CacheControl())
    spent.clear()
    whole = []
    for text in asked:
        began = time.perf_counter()
        await cache.lookup(query(text), CacheControl())
        whole.append(1e3 * (time.perf_counter() - began))
    await cache.close()
    stages = "  ".join(f"{name} {np.median(times):.2f}" for name, times in spent.items())
    p50, p95 = np.percentile(whole, (50, 95))
    return f"{num:7} entries: p50 {p50:.1f} ms, p95 {p95:.1f} ms  ({stages})"


def _entry(name: str, scope: str, text: str) -> Entry:
    return Entry(
        entry_id=name, tenant="t", namespace="", model="m", model_fingerprint="f", answer=b"x",
        created_at=0, expires_at=FOREVER, intent="factual", scope=scope, text=text,
    )  # fmt: skip


async def main(options: argparse.Namespace) -> None:
    """Print a line for each number of entries."""
    base = prepare(default_models_dir(os.environ)).embedder_path
    for num in options.entries:
        with tempfile.TemporaryDirectory() as folder:
            line = await measure(options, num, BertEncoder(base), Path(folder), base)
            print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    sets = os.environ.get("STRATA_BENCH", "../shared/data/semantic")
    parser.add_argument("--sets", type=Path, default=Path(sets), help="folder of labelled pairs")
    parser.add_argument("--entries", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--asked", type=int, default=200)
    asyncio.run(main(parser.parse_args()))
