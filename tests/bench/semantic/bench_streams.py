"""Streams of pairs: hits, wrong hits, first-hit delay and time of ways to decide on the same texts.

usage: python -m tests.bench.semantic.bench_streams [--sets FOLDER] [--pairs N] [--only NAME...]

Every text is asked once, in the order of the pairs; what is not served is stored. A hit is judged
by the labels, and by what follows from them; of a hit between texts that no label joins or parts
nothing is known. Intervals: Clopper-Pearson, 95%. The time is that of deciding alone: ours includes
guards and verifier when their scores are new. Peers get our vectors and run in a venv of their own
($STRATA_PEERS/semantic, default ~/.cache/strata-peers/semantic); what is absent is said to be.
"""

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gateway.bundled import default_models_dir, prepare
from semantic_layer import Scorer, ThreadedEmbedder, ThreadedVerifier, Thresholds, load_verifier
from semantic_layer.bert_encoder import BertEncoder
from semantic_layer.decision import Judge
from semantic_layer.intent import detect_intent
from tests.bench import pair_sets
from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic.curves import fitted_sets
from tests.bench.semantic.mixture import langcache_half
from tests.bench.semantic.stream import (
    Array,
    Decider,
    KnownScores,
    Ours,
    Static,
    Stream,
    Tally,
    play,
    vectors_of,
)
from tests.bench.semantic.vcache_rule import VCacheRule

BUDGETS = (0.01, 0.02, 0.05)
STREAMS: dict[str, Callable[[Path], list[LabelledPair]]] = {
    "authored": lambda _: [kinded.pair for kinded in fitted_sets()],
    "question_pairs_dev": pair_sets.question_pairs,
    "redis_langcache": lambda folder: langcache_half(folder, trained=False),
    "lcqmc": pair_sets.lcqmc,
    "quora_held_out": pair_sets.quora_held_out,
}
GPTCACHE = Path(__file__).parent / "peer_gptcache.py"


@dataclass(frozen=True, slots=True)
class Bench:
    """What decides, and where numbers are kept between runs."""

    encoder: BertEncoder
    judge: Judge
    kept: Path

    async def run(self, name: str, pairs: Sequence[LabelledPair]) -> list[Tally]:
        """Play one stream with everything."""
        stream = Stream.of(pairs)
        place = self.kept / f"{name}-{len(pairs)}"
        vectors = vectors_of(stream, self.encoder, place.with_suffix(".npy"))
        scores = KnownScores(stream, self.judge, self.kept / f"{name}.json")
        intents = [detect_intent(text) for text in stream.texts]
        print(f"{name}: {len(pairs)} pairs, {len(stream.texts)} texts", flush=True)
        tallies = []
        try:
            for decider, keeps_all in _deciders(intents, scores):
                tally = await play(stream, vectors, decider, keep_all_misses=keeps_all)
                print(" ", tally, flush=True)
                tallies.append(tally)
        finally:
            scores.keep()
        gptcache = _gptcache(stream, vectors)
        print(" ", gptcache or "GPTCache                           absent", flush=True)
        print("  RedisVL                            absent: it needs a Redis with a search module")
        return [*tallies, *([gptcache] if gptcache else [])]


def _deciders(intents: Sequence[str], scores: KnownScores) -> list[tuple[Decider, bool]]:
    ours = []
    for budget in BUDGETS:
        thresholds = Thresholds.within(budget)
        limits = [thresholds.of(intent) for intent in intents]
        ours.append((Ours(f"ours, budget {budget:.0%}", limits, scores.of), True))
    static = [
        (Static(0.95, "cosine >= 0.95"), True),
        (Static(0.98, "cosine >= 0.98"), True),
        (Static(0.9, "cosine >= 0.90 (RedisVL's default)"), True),
    ]
    rules: list[tuple[Decider, bool]] = []
    for delta in BUDGETS:
        for keeps_all in (False, True):
            rule = VCacheRule(delta)
            rule.name += ", all misses kept" if keeps_all else ""
            rules.append((rule, keeps_all))
    return [*ours, *static, *rules]


def _gptcache(stream: Stream, vectors: Array) -> Tally | None:
    home = Path(os.environ.get("STRATA_PEERS", Path.home() / ".cache/strata-peers")) / "semantic"
    python = home / "bin/python"
    if not python.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        np.save(path, vectors)
        began = time.perf_counter()
        done = subprocess.run(
            [str(python), str(GPTCACHE), str(path)],
            capture_output=True, text=True, check=False, timeout=300, cwd=folder,
        )  # fmt: skip
        seconds = time.perf_counter() - began
    if done.returncode:
        print(done.stderr[-500:])
        return None
    tally = Tally("GPTCache, its defaults", len(stream.texts), seconds=seconds)
    for asked, served in enumerate(json.loads(done.stdout.splitlines()[-1])):
        if served is None:
            continue
        verdict = stream.verdict(asked, served)
        tally.right += verdict is True
        tally.wrong += verdict is False
        tally.unlabelled += verdict is None
        tally.first_hit = asked if tally.first_hit is None else tally.first_hit
    return tally


async def main(options: argparse.Namespace) -> None:
    """Play the streams that were asked for."""
    embedder_path = prepare(default_models_dir(os.environ)).embedder_path
    encoder = BertEncoder(embedder_path)
    embedder = ThreadedEmbedder(encoder)
    scorer = await Scorer.matching(embedder)
    verifier = ThreadedVerifier(load_verifier("bundled", embedder_path))
    judge = Judge(scorer, encoder.knows_word, verifier)
    bench = Bench(encoder, judge, options.kept)
    for name in options.only or STREAMS:
        pairs = STREAMS[name](options.sets)[: options.pairs]
        tallies = await bench.run(name, pairs)
        if options.show:
            _show(Stream.of(pairs), tallies[0], options.show)
    await verifier.close()
    await embedder.close()


def _show(stream: Stream, tally: Tally, most: int) -> None:
    for stored, asked in tally.wrong_pairs[:most]:
        print("   ", stream.texts[stored], "|", stream.texts[asked])


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    sets = os.environ.get("STRATA_BENCH", "../shared/data/semantic")
    parser.add_argument("--sets", type=Path, default=Path(sets), help="folder of labelled pairs")
    parser.add_argument("--pairs", type=int, default=1_500, help="of each set, at most")
    parser.add_argument("--only", nargs="*", choices=list(STREAMS))
    parser.add_argument("--show", type=int, default=0, help="print so many hits labelled wrong")
    kept = Path.home() / ".cache/strata-bench/streams"
    parser.add_argument("--kept", type=Path, default=kept, help="folder of numbers between runs")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = read_options()
    if chosen.sets.is_dir():
        asyncio.run(main(chosen))
    else:
        print(f"left out: no labelled pairs in {chosen.sets}; name their folder in STRATA_BENCH")
