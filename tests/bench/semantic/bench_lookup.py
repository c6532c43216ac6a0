"""What a semantic look-up costs among many entries, stage by stage.

usage: python -m tests.bench.semantic.bench_lookup [--sets FOLDER] [--entries N...] [--asked N]
       [--threads N] [--at-once N] [--long]

Over the embedded index and a store in memory. Entries are Quora's questions, 10,000 of them
embedded; beyond those, an entry has the text of one and the vector of two of them. Of the asked
texts half are rewordings of stored ones (pairs labelled the same), half are questions that are not
stored. With ``--long`` entries beyond 500 are two questions one behind the other. Prints p50 and
p95 in milliseconds, whole, by outcome, and by stage: sums of one look-up, p50 and mean of all.
Vectors are kept in ``~/.cache/strata-bench``.
"""

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    CacheControl,
    CachePolicy,
    CacheQuery,
    Entry,
    Hit,
    MemoryResponseStore,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    ThreadedVerifier,
    VectorIndex,
    load_verifier,
    open_vector_index,
)
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.models.embedding import Vectors
from semantic_layer.stores.vector_index.base import Point
from tests.bench import pair_sets

EMBEDDED, LONG = 10_000, 500
BATCH = 1_000
FOREVER = 4e9
KEPT = Path.home() / ".cache" / "strata-bench"
STAGES = ("embed", "search", "fetch", "verifier", "guards and the rest")


@dataclass
class Spent:
    """Milliseconds of each look-up: whole, by outcome, and by stage."""

    whole: list[float] = field(default_factory=list)
    by_outcome: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    stages: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    now: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def timed(self, stage: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        """Return the call, its time counted to a stage."""

        async def timed(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return await call(*args, **options)
            finally:
                self.now[stage] += 1e3 * (time.perf_counter() - began)

        return timed

    def note(self, outcome: str, whole_ms: float) -> None:
        """Close a look-up; what no stage took is the rest: reading, guards, the decision."""
        self.whole.append(whole_ms)
        self.by_outcome[outcome].append(whole_ms)
        self.now[STAGES[-1]] = whole_ms - sum(self.now.values())
        for stage in STAGES:
            self.stages[stage].append(self.now[stage])
        self.now.clear()

    def lines(self) -> list[str]:
        """Return the table."""
        p50, p95 = np.percentile(self.whole, (50, 95))
        outcomes = (f"{o} {len(t)} p50 {np.median(t):.1f}" for o, t in self.by_outcome.items())
        stages = (f"{s} {np.median(t):.2f}/{np.mean(t):.2f}" for s, t in self.stages.items())
        return [f"p50 {p50:.1f} ms, p95 {p95:.1f} ms ({', '.join(outcomes)})", "  ".join(stages)]


def query(text: str) -> CacheQuery:
    """Return the request that asks a text."""
    return CacheQuery("t", "m", "f", {"messages": [{"role": "user", "content": text}]})


@dataclass(frozen=True)
class Texts:
    """What is stored and what is asked."""

    stored: list[str]
    asked: list[str]

    @classmethod
    def of(cls, sets: Path, num_asked: int) -> "Texts":
        """Choose them, the same in every run; no asked text is stored."""
        pairs = [p for p in pair_sets.quora_held_out(sets) if p.same]
        reworded = [p.other for p in pairs[: num_asked // 2]]
        stored = [p.one for p in pairs[: num_asked // 2]]
        others = [text for p in pair_sets.quora_train(sets) for text in (p.one, p.other)]
        new = [p.other for p in pair_sets.quora(sets)[30_000 : 30_000 + num_asked - len(reworded)]]
        asked = reworded + new
        texts = dict.fromkeys(stored + others)
        stored = [text for text in texts if text not in set(asked)][:EMBEDDED]
        random.Random(0).shuffle(asked)
        return cls(stored, asked)


def embedded(texts: Sequence[str], encoder: BertEncoder) -> Vectors:
    """Return the texts' vectors, kept from an earlier run where they are the same."""
    path = KEPT / f"lookup-{encoder.fingerprint[:12]}-{hash_of(texts)}.npy"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows = np.zeros((len(texts), encoder.dim), np.float32)
        for start in range(0, len(order), 32):
            chosen = order[start : start + 32]
            rows[chosen] = encoder.encode([texts[i] for i in chosen])
        np.save(path, rows)
    found: Vectors = np.load(path)
    return found


def hash_of(texts: Sequence[str]) -> str:
    """Return a name for a list of texts."""
    return f"{len(texts)}-{random.Random(chr(0).join(texts)).getrandbits(48):x}"


def entries_of(
    texts: Sequence[str], vectors: Vectors, num: int, *, are_long: bool
) -> tuple[list[str], Vectors]:
    """Return the texts and vectors of so many entries."""
    num_real = min(num, LONG if are_long else len(texts))
    rng = np.random.default_rng(0)
    one, other = rng.integers(num_real, size=(2, num - num_real))
    made = vectors[one] + vectors[other]
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    pairs = zip(one, other, strict=True)
    more = [f"{texts[a]} {texts[b]}" if are_long else texts[a] for a, b in pairs]
    return [*texts[:num_real], *more], np.vstack([vectors[:num_real], made])


async def fill(
    cache: SemanticCache, index: VectorIndex, store: MemoryResponseStore,
    texts: Sequence[str], vectors: Vectors,
) -> None:  # fmt: skip
    """Store entries as the cache itself would."""
    miss = await cache.lookup(query("Which scope is this?"), CacheControl())
    scope = getattr(miss, "scope", None)
    assert scope is not None, "the request can be found by likeness"
    for start in range(0, len(texts), BATCH):
        named = [(f"{i:064x}", i) for i in range(start, min(start + BATCH, len(texts)))]
        await index.upsert(
            [Point(n, "t", scope, "factual", FOREVER, (), vectors[i]) for n, i in named]
        )
        for name, i in named:
            await store.put(
                Entry(
                    entry_id=name, tenant="t", namespace="", model="m", model_fingerprint="f",
                    answer=b"x", created_at=0, expires_at=FOREVER, intent="factual", scope=scope,
                    text=texts[i],
                )
            )  # fmt: skip


async def measure(options: argparse.Namespace, num: int, folder: Path, base: Path) -> None:
    """Print what look-ups among ``num`` entries take."""
    encoder, spent = BertEncoder(base), Spent()
    chosen = Texts.of(options.sets, options.asked)
    vectors = embedded(chosen.stored, encoder)
    embedder = ThreadedEmbedder(encoder)
    store = MemoryResponseStore()
    index = open_vector_index("embedded", folder=folder, collection=str(num), dim=embedder.dim)
    verifier = ThreadedVerifier(load_verifier("bundled", base))
    cache = SemanticCache(
        store=store,
        index=index,
        embedder=embedder,
        verifier=verifier,
        scorer=await Scorer.matching(embedder),
        policy=CachePolicy(index_deadline_s=30, embed_deadline_s=30, verify_deadline_s=30),
    )
    await fill(cache, index, store, *entries_of(chosen.stored, vectors, num, are_long=options.long))
    for text in chosen.asked[:20]:
        await cache.lookup(query(f"{text} Now"), CacheControl())
    for stage, part, name in (
        ("embed", embedder, "embed"), ("search", index, "search"),
        ("fetch", store, "get_many"), ("verifier", verifier, "scores"),
    ):  # fmt: skip
        setattr(part, name, spent.timed(stage, getattr(part, name)))
    began = time.perf_counter()
    for text in chosen.asked:
        at = time.perf_counter()
        outcome = await cache.lookup(query(text), CacheControl())
        name = "hit" if isinstance(outcome, Hit) else "miss"
        spent.note(name, 1e3 * (time.perf_counter() - at))
    rate = len(chosen.asked) / (time.perf_counter() - began)
    for line in (f"{num} entries, {rate:.0f} look-ups/s", *spent.lines()):
        print(f"  {line}", flush=True)
    if options.at_once:
        print(f"  {await crowd(cache, chosen.asked, options.at_once)}", flush=True)
    await cache.close()


async def crowd(cache: SemanticCache, asked: Sequence[str], num: int) -> str:
    """Ask ``num`` at a time; tell what each waits and for how long the loop was not free."""
    waiting = iter([f"{text} " for text in asked])
    took: list[float] = []
    lags: list[float] = []

    async def ask() -> None:
        for text in waiting:
            began = time.perf_counter()
            await cache.lookup(query(text), CacheControl())
            took.append(1e3 * (time.perf_counter() - began))

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(1e3 * (time.perf_counter() - began) - 1)

    watcher = asyncio.create_task(watch())
    began = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(num)))
    rate = len(took) / (time.perf_counter() - began)
    watcher.cancel()
    p50, p99 = np.percentile(took, (50, 99))
    late = np.percentile(lags, (50, 99))
    return (
        f"{num} at once: p50 {p50:.1f} ms, p99 {p99:.1f} ms, {rate:.0f} look-ups/s; "
        f"the loop late by p50 {late[0]:.1f} ms, p99 {late[1]:.1f} ms"
    )


async def main(options: argparse.Namespace) -> None:
    """Print a table for each number of entries."""
    base = prepare(default_models_dir(os.environ)).embedder_path
    for num in options.entries:
        with tempfile.TemporaryDirectory() as folder:
            await measure(options, num, Path(folder), base)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    sets = os.environ.get("STRATA_BENCH", "../shared/data/semantic")
    parser.add_argument("--sets", type=Path, default=Path(sets), help="folder of labelled pairs")
    parser.add_argument("--entries", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--asked", type=int, default=200)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--at-once", type=int, default=0)
    parser.add_argument("--long", action="store_true", help="long entries that rules leave open")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    asyncio.run(main(options))
