"""What a whole look-up of ours costs among a stream's texts: search, rules, verifier."""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    CacheControl,
    CachePolicy,
    MemoryResponseStore,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    ThreadedVerifier,
    load_verifier,
    open_vector_index,
)
from semantic_layer.models.bert_encoder import BertEncoder
from tests.bench.semantic.bench_lookup import Spent, fill, query
from tests.bench.semantic.stream import Array

ASKED = 200
_WARM = 20


async def whole_lookups(texts: Sequence[str], vectors: Array, encoder: BertEncoder) -> str:
    """Ask the last texts among all before them, and say what it took with and without embedding."""
    num = max(len(texts) - ASKED, len(texts) // 2)
    spent, embedder = Spent(), ThreadedEmbedder(encoder)
    base = prepare(default_models_dir(os.environ)).embedder_path
    store = MemoryResponseStore()
    with tempfile.TemporaryDirectory() as folder:
        index = open_vector_index(
            "embedded", folder=Path(folder), collection="streams", dim=embedder.dim
        )
        cache = SemanticCache(
            store=store,
            index=index,
            embedder=embedder,
            verifier=ThreadedVerifier(load_verifier("bundled", base)),
            scorer=await Scorer.matching(embedder),
            policy=CachePolicy(index_deadline_s=30, embed_deadline_s=30, verify_deadline_s=30),
        )
        await fill(cache, index, store, texts[:num], vectors[:num])
        for text in texts[num : num + _WARM]:
            await cache.lookup(query(f"{text} Now"), CacheControl())
        embedder.embed = spent.timed("embed", embedder.embed)  # type: ignore[method-assign]
        for text in texts[num:]:
            began = time.perf_counter()
            await cache.lookup(query(text), CacheControl())
            spent.note("asked", 1e3 * (time.perf_counter() - began))
        await cache.close()
    bare = np.subtract(spent.whole, spent.stages["embed"])
    p50, p95 = np.percentile(bare, (50, 95))
    return (
        f"a whole look-up of ours among {num} texts, {len(texts) - num} asked: mean "
        f"{bare.mean():.2f} ms without embedding (p50 {p50:.2f}, p95 {p95:.2f}), "
        f"p50 {np.median(spent.whole):.2f} ms with it"
    )
