"""Measure the semantic decision: what is served and how much of it is wrong, and what it costs.

usage: python -m tests.bench.bench_semantic [--sets FOLDER] [--embedder FOLDER] [--entries N]

Each pair is judged as if its first text were stored and its second asked, at default thresholds.
Intervals: Clopper-Pearson, 95%. ``wrong/served`` is what a user meets, ``wrong/all`` what the set
holds. Labels of Quora and LCQMC are noisy: read their wrong shares as upper bounds.
"""

import argparse
import asyncio
import json
import os
import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy.stats import beta

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    CacheControl,
    CacheQuery,
    Entry,
    MemoryResponseStore,
    MemoryVectorIndex,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    Thresholds,
    detect_intent,
)
from semantic_layer.bert_encoder import BertEncoder
from semantic_layer.decision import Found, Judge
from tests.bench.fit_scorer import embed
from tests.bench.pair_sets import MEASURED, LabelledPair


@dataclass(frozen=True, slots=True)
class Line:
    """One set's figures; shares in 0..1, intervals of 95%."""

    name: str
    pairs: int
    same_pairs: int
    served: int
    wrong: int
    served_of_same: float
    served_low: float
    served_high: float
    wrong_of_served: float
    wrong_low: float
    wrong_high: float
    wrong_of_all: float

    def __str__(self) -> str:
        return (
            f"{self.name:20} {self.pairs:6} pairs  served of same {self.served_of_same:6.1%} "
            f"[{self.served_low:.1%}, {self.served_high:.1%}]  wrong of served "
            f"{self.wrong:3}/{self.served:<5} {self.wrong_of_served:6.2%} "
            f"[{self.wrong_low:.2%}, {self.wrong_high:.2%}]  wrong of all {self.wrong_of_all:.2%}"
        )


def interval(hits: int, tries: int) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share."""
    if not tries:
        return 0.0, 1.0
    low = float(beta.ppf(0.025, hits, tries - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, tries - hits)) if hits < tries else 1.0
    return low, high


def measure(name: str, pairs: list[LabelledPair], judge: Judge, encoder: BertEncoder) -> Line:
    """Judge every pair of a set."""
    vectors = embed([text for pair in pairs for text in (pair.one, pair.other)], encoder)
    thresholds = Thresholds()
    right = wrong = 0
    for pair in pairs:
        found = Found(float(vectors[pair.one] @ vectors[pair.other]), _entry(pair.one))
        threshold = thresholds.of(detect_intent(pair.other))
        if judge.decide(pair.other, threshold, [found]).entry is not None:
            right, wrong = right + pair.same, wrong + (not pair.same)
    num_same = sum(pair.same for pair in pairs)
    served = right + wrong
    return Line(
        name,
        len(pairs),
        num_same,
        served,
        wrong,
        right / max(1, num_same),
        *interval(right, num_same),
        wrong / max(1, served),
        *interval(wrong, served),
        wrong / len(pairs),
    )


async def stage_medians(
    texts: list[str], encoder: BertEncoder, scorer: Scorer, num_entries: int
) -> dict[str, float]:
    """Return the median milliseconds of each stage of semantic look-ups among stored texts."""
    embedder = ThreadedEmbedder(encoder)
    spent: dict[str, list[float]] = defaultdict(list)
    cache = SemanticCache(
        store=MemoryResponseStore(),
        index=MemoryVectorIndex(embedder.dim),
        embedder=embedder,
        scorer=scorer,
        observe=lambda stage, seconds: spent[stage].append(1e3 * seconds),
    )
    for text in texts[:num_entries]:
        await cache.insert(_query(text), CacheControl(), b"x", answer_text="x")
    spent.clear()
    for text in texts[:200]:
        await cache.lookup(_query(text + " Thanks!"), CacheControl())
    await cache.close()
    return {stage: statistics.median(times) for stage, times in spent.items()}


def main(folder: Path, embedder: Path, *, num_entries: int, as_json: bool) -> None:
    """Print one line a set, then the stages."""
    encoder = BertEncoder(embedder)
    scorer = asyncio.run(_scorer(encoder))
    judge = Judge(scorer, encoder.knows_word)
    lines = []
    for name, read in MEASURED.items():
        lines.append(measure(name, read(folder), judge, encoder))
        if not as_json:
            print(lines[-1], flush=True)
    texts = list(dict.fromkeys(p.one for p in MEASURED["quora_held_out"](folder)))
    stages = asyncio.run(stage_medians(texts, encoder, scorer, num_entries))
    if as_json:
        print(json.dumps({"sets": [asdict(line) for line in lines], "stages_ms": stages}))
    else:
        print(
            f"p50 ms by stage, {num_entries} entries, c=1:",
            {s: round(t, 2) for s, t in stages.items()},
        )


async def _scorer(encoder: BertEncoder) -> Scorer:
    embedder = ThreadedEmbedder(encoder)
    try:
        return await Scorer.matching(embedder)
    finally:
        await embedder.close()


def _query(text: str) -> CacheQuery:
    return CacheQuery("t", "m", "f", {"messages": [{"role": "user", "content": text}]})


def _entry(text: str) -> Entry:
    return Entry(
        entry_id="x",
        tenant="t",
        namespace="",
        model="m",
        model_fingerprint="f",
        answer=b"",
        created_at=0,
        expires_at=1,
        text=text,
    )


def read_options() -> argparse.Namespace:
    """Read the command line; absent pair sets are said by name, never taken for measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    sets = os.environ.get("STRATA_BENCH", "../shared/data/semantic")
    parser.add_argument("--sets", type=Path, default=Path(sets), help="folder of labelled pairs")
    parser.add_argument("--embedder", type=Path, default=None, help="default: the bundled one")
    parser.add_argument("--entries", type=int, default=1_000, help="entries of the look-ups")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    options = read_options()
    if options.sets.is_dir():
        main(
            options.sets,
            options.embedder or prepare(default_models_dir(os.environ)).embedder_path,
            num_entries=options.entries,
            as_json=options.json,
        )
    else:
        print(f"left out: no labelled pairs in {options.sets}; name their folder in STRATA_BENCH")
