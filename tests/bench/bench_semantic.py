"""Measure the semantic decision: what is served and how much of it is wrong, and what it costs.

usage: python -m tests.bench.bench_semantic [--sets FOLDER] [--embedder FOLDER] [--verifier NAME]
           [--entries N] [--most N] [--json]

Each pair is judged as if its first text were stored and its second asked. Thresholds are those that
let 1, 2 and 5% of the traps of authored groups pass that were neither trained on nor calibrated
with, beside those a gateway begins with for these budgets. Intervals: Clopper-Pearson, 95%. Labels
of Quora, LCQMC and PAWS-X are noisy: read their wrong shares as upper bounds.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    CacheControl,
    CacheQuery,
    MemoryResponseStore,
    MemoryVectorIndex,
    PooledThresholds,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    ThreadedVerifier,
    Thresholds,
    Verifier,
    detect_intent,
    load_verifier,
)
from semantic_layer.decision import Judge
from semantic_layer.guarded import GuardedParts, GuardedVerifier
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.policy import CachePolicy
from tests.bench.semantic.curves import (
    SHARES,
    Kinded,
    Scored,
    crossed_sets,
    fitted_sets,
    interval,
    measured_sets,
    scored,
    threshold_at,
)

_BATCH = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One set at one threshold; shares in 0..1, intervals of 95%. ``kinds``: served by kind."""

    name: str
    at: str
    same: float
    same_low: float
    same_high: float
    traps: float
    traps_low: float
    traps_high: float
    wrong_of_served: float
    wrong_high: float
    kinds: dict[str, float]

    def __str__(self) -> str:
        kinds = "  ".join(f"{kind} {share:.1%}" for kind, share in self.kinds.items())
        return (
            f"{self.name:20} {self.at:8} same {self.same:6.1%} [{self.same_low:.1%}, "
            f"{self.same_high:.1%}]  traps {self.traps:6.2%} [{self.traps_low:.2%}, "
            f"{self.traps_high:.2%}]  wrong/served {self.wrong_of_served:.2%} "
            f"(≤ {self.wrong_high:.2%})  {kinds}"
        )


def line(name: str, at: str, rows: list[Scored], thresholds: list[float]) -> Line:
    """Sum up what a set's rows, each against its threshold, come to."""
    passed = [row.score >= t for row, t in zip(rows, thresholds, strict=True)]
    same = [ok for ok, row in zip(passed, rows, strict=True) if row.pair.same]
    traps = [ok for ok, row in zip(passed, rows, strict=True) if not row.pair.same]
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for ok, row in zip(passed, rows, strict=True):
        by_kind[row.kind].append(ok)
    wrong_high = interval(sum(traps), sum(passed))[1]
    return Line(
        name,
        at,
        sum(same) / max(1, len(same)),
        *interval(sum(same), len(same)),
        sum(traps) / max(1, len(traps)),
        *interval(sum(traps), len(traps)),
        sum(traps) / max(1, sum(passed)),
        wrong_high,
        {kind: sum(oks) / len(oks) for kind, oks in sorted(by_kind.items())},
    )


def lines_of(
    name: str, rows: list[Scored], cuts: dict[float, float], by_budget: dict[float, Thresholds]
) -> list[Line]:
    """Return a set's lines: at the fitted thresholds and at those a gateway begins with."""
    intents = [detect_intent(row.pair.other) for row in rows]
    begun = {f"budget {w:.0%}": map(own.of, intents) for w, own in by_budget.items()}
    return [
        *(line(name, f"≤{w:.0%}", rows, [cut] * len(rows)) for w, cut in cuts.items()),
        *(line(name, label, rows, list(thresholds)) for label, thresholds in begun.items()),
    ]


async def stage_medians(
    texts: list[str],
    encoder: BertEncoder,
    scorer: Scorer,
    verifier: Verifier | None,
    num_entries: int,
) -> dict[str, float]:
    """Return the median milliseconds of each stage of semantic look-ups among stored texts."""
    embedder = ThreadedEmbedder(encoder)
    spent: dict[str, list[float]] = defaultdict(list)
    cache = SemanticCache(
        store=MemoryResponseStore(),
        index=MemoryVectorIndex(embedder.dim),
        embedder=embedder,
        scorer=scorer,
        verifier=verifier,
        observe=lambda stage, seconds: spent[stage].append(1e3 * seconds),
    )
    for text in texts[:num_entries]:
        await cache.insert(_query(text), CacheControl(), b"x", answer_text="x")
    spent.clear()
    for text in texts[:200]:
        await cache.lookup(_query("In short: " + text), CacheControl())
    await cache.close()
    return {stage: statistics.median(times) for stage, times in spent.items()}


async def verifier_medians(verifier: Verifier, pairs: list[Kinded]) -> dict[str, float]:
    """Return the median milliseconds of scoring one new pair, and five that share a text."""
    spent: dict[str, list[float]] = defaultdict(list)
    for start in range(0, min(200, len(pairs) - _BATCH), _BATCH):
        asked = pairs[start].pair.one
        others = [each.pair.other for each in pairs[start : start + _BATCH]]
        for name, batch in (("one", others[:1]), ("five", others)):
            started = time.perf_counter()
            await verifier.scores([(f"{asked} {name}", other) for other in batch])
            spent[name].append(1e3 * (time.perf_counter() - started))
    return {name: statistics.median(times) for name, times in spent.items()}


async def measure(options: argparse.Namespace) -> None:
    """Print the lines of each set, then what it costs."""
    models = prepare(default_models_dir(os.environ))
    encoder = BertEncoder(options.embedder or models.embedder_path)
    scorer = await _scorer(encoder)
    verifier = None
    if options.verifier != "none":
        verifier = ThreadedVerifier(load_verifier(options.verifier, models.embedder_path))
    judge = Judge(scorer, encoder.knows_word, _unhurried(verifier))
    fitted = await scored(fitted_sets(), judge, encoder)
    cuts = {share: threshold_at(fitted, share) for share in SHARES}
    pooled = PooledThresholds.matching(judge.fingerprint)
    by_budget = {share: Thresholds.within(share, pooled=pooled) for share in SHARES}
    lines = lines_of("authored, held out", fitted, cuts, by_budget)
    sets = {
        "authored, crossed": crossed_sets(options.most),
        **measured_sets(options.sets, options.most),
    }
    _say(options, "thresholds:", {f"{share:.0%}": round(cut, 4) for share, cut in cuts.items()})
    _say(options, *lines)
    for name, pairs in sets.items():
        found = lines_of(name, await scored(pairs, judge, encoder), cuts, by_budget)
        _say(options, *found)
        lines += found
    texts = list(dict.fromkeys(each.pair.one for each in sets["quora_held_out"]))
    costs = await verifier_medians(verifier, sets["quora_held_out"]) if verifier else {}
    stages = await stage_medians(texts, encoder, scorer, verifier, options.entries)
    if options.json:
        print(
            json.dumps(
                {
                    "thresholds": cuts,
                    "sets": [asdict(each) for each in lines],
                    "verifier_ms": costs,
                    "stages_ms": stages,
                }
            )
        )
        return
    print("verifier p50 ms:", {name: round(ms, 1) for name, ms in costs.items()})
    print(f"p50 ms by stage, {options.entries} entries, c=1:", _rounded(stages))


def _say(options: argparse.Namespace, *said: object) -> None:
    if not options.json:
        print(*said, sep="\n", flush=True)


def _rounded(times: dict[str, float]) -> dict[str, float]:
    return {stage: round(ms, 2) for stage, ms in times.items()}


def _unhurried(verifier: Verifier | None) -> GuardedVerifier | None:
    policy = CachePolicy(verify_deadline_s=60.0)
    parts = GuardedParts(
        MemoryResponseStore(), MemoryVectorIndex(1), None, verifier, policy, on_failure=None
    )
    return parts.verifier


async def _scorer(encoder: BertEncoder) -> Scorer:
    embedder = ThreadedEmbedder(encoder)
    try:
        return await Scorer.matching(embedder)
    finally:
        await embedder.close()


def _query(text: str) -> CacheQuery:
    return CacheQuery("t", "m", "f", {"messages": [{"role": "user", "content": text}]})


def read_options() -> argparse.Namespace:
    """Read the command line; absent pair sets are said by name, never taken for measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    sets = os.environ.get("STRATA_BENCH", "../shared/data/semantic")
    parser.add_argument("--sets", type=Path, default=Path(sets), help="folder of labelled pairs")
    parser.add_argument("--embedder", type=Path, default=None, help="default: the bundled one")
    parser.add_argument("--verifier", default="bundled", help="bundled, none, or a name or folder")
    parser.add_argument("--entries", type=int, default=1_000, help="entries of the look-ups")
    parser.add_argument("--most", type=int, default=1_000, help="pairs of each set")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = read_options()
    if chosen.sets.is_dir():
        asyncio.run(measure(chosen))
    else:
        print(f"left out: no labelled pairs in {chosen.sets}; name their folder in STRATA_BENCH")
