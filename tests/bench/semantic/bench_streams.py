"""Streams of pairs: hits, wrong hits, first-hit delay and time of ways to decide on the same texts.

usage: python -m tests.bench.semantic.bench_streams [--sets FOLDER] [--pairs N] [--only NAME...]

Every text is asked once, in the order of the pairs; what is not served is stored. A hit is judged
by the labels, and by what follows from them; of a hit between texts that no label joins or parts
nothing is known. Intervals: Clopper-Pearson, 95%; behind them the upper bound alone, at 95%, which
budgets are of. A run that was cut goes on where it ended: rows that are done are kept
(`kept_rows`), and what the verifier said (`pair_scores`). The time is that of a look-up without
embedding: of peers their own, stores and all; of a rule written here that of deciding. Ours reads
kept scores, so its time stands in a line of its own, of whole look-ups among the stream's texts.
Peers get our vectors (`peers`); what is absent is said to be. ``--list FILE`` writes every hit
labelled wrong, to be read: labels of these sets are noisy, and count as true all the same.
"""

import argparse
import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    IntentClassifier,
    PooledThresholds,
    Scorer,
    ThreadedEmbedder,
    ThreadedVerifier,
    load_verifier,
)
from semantic_layer.decision import Judge
from semantic_layer.intents.intent_learning import IntentTeacher
from semantic_layer.models.bert_encoder import BertEncoder
from tests.bench import pair_sets
from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic.curves import fitted_sets
from tests.bench.semantic.kept_rows import KeptRows, digest
from tests.bench.semantic.mixture import langcache_half, paws_half
from tests.bench.semantic.our_decider import Learning
from tests.bench.semantic.pair_scores import KeptVerifier, PairScores
from tests.bench.semantic.peers import PEERS
from tests.bench.semantic.stream import (
    Array,
    Decider,
    Nearest,
    Static,
    Stream,
    Tally,
    play,
    vectors_of,
)
from tests.bench.semantic.stream_lookups import whole_lookups
from tests.bench.semantic.vcache_rule import VCacheRule

BUDGETS = (0.01, 0.02, 0.05)
STREAMS: dict[str, Callable[[Path], list[LabelledPair]]] = {
    "authored": lambda _: [kinded.pair for kinded in fitted_sets()],
    "question_pairs_dev": pair_sets.question_pairs,
    "redis_langcache": lambda folder: langcache_half(folder, trained=False),
    "lcqmc": pair_sets.lcqmc,
    "quora_held_out": pair_sets.quora_held_out,
    "pawsx_zh": lambda folder: paws_half(folder, trained=False),
}
OURS = "ours"
_HERE, _ROOT = Path(__file__).parent, Path(__file__).parents[3]
_STREAM = _HERE / "stream.py"
SOURCES: dict[type, Sequence[Path]] = {
    Static: (_STREAM,),
    VCacheRule: (_STREAM, _HERE / "vcache_rule.py"),
    Learning: (
        _STREAM, _HERE / "our_decider.py", _HERE / "pair_scores.py", _ROOT / "semantic_layer",
        *(_ROOT / "gateway" / "evidence" / name for name in ("trainer.py", "tuner.py")),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bench:
    """What decides, and where numbers are kept between runs."""

    encoder: BertEncoder
    detect: IntentClassifier
    scores: PairScores
    kept: Path
    shadow_share: float
    ways: Sequence[str] = ()
    peer_limit_s: float = 800.0

    async def run(self, name: str, pairs: Sequence[LabelledPair]) -> list[Tally]:
        """Play one stream with everything that was not played before, and print its table."""
        stream = Stream.of(pairs)
        print(f"{name}: {len(pairs)} pairs, {len(stream.texts)} texts", flush=True)
        vectors = vectors_of(stream, self.encoder, self.kept / f"{name}.npy")
        rows = KeptRows(self.kept / f"rows-{name}.jsonl")
        tallies = [
            *await self._played(stream, vectors, rows),
            *self._peers(stream, vectors, rows),
        ]
        if self._wants(OURS):
            print(f"  {await whole_lookups(stream.texts, vectors, self.encoder)}", flush=True)
        return tallies

    async def _played(self, stream: Stream, vectors: Array, rows: KeptRows) -> list[Tally]:
        """Play what decides here."""
        intents = [
            self.detect(text, vector) for text, vector in zip(stream.texts, vectors, strict=True)
        ]
        nearest, is_scored, tallies = Nearest(vectors), False, []
        for decider, keeps_all in self._deciders(stream, intents):
            if not self._wants(decider.name):
                continue
            is_ours = isinstance(decider, Learning)
            more = (intents, self.scores.judge.fingerprint, self.shadow_share) if is_ours else ()
            of = digest(stream, vectors, SOURCES[type(decider)], keeps_all, *more)
            tally = rows.get(decider.name, of)
            if tally is None:
                if is_ours and not is_scored:
                    await self._score(stream, nearest)
                    is_scored = True
                with threadpool_limits(
                    1, "blas"
                ):  # more of them wait for each other on tiny arrays
                    tally = await play(stream, nearest, decider, keep_all_misses=keeps_all)
                if isinstance(decider, Learning):
                    tally.falls, tally.seconds = decider.falls, None
                rows.keep(of, tally)
            tallies.append(_told(tally))
        return tallies

    def _peers(self, stream: Stream, vectors: Array, rows: KeptRows) -> list[Tally]:
        """Let peers play."""
        tallies = []
        for peer in filter(lambda peer: self._wants(peer.name), PEERS):
            of = digest(stream, vectors, [peer.script], peer.options, self.peer_limit_s)
            tally = rows.get(peer.name, of) or peer.play(stream, vectors, self.peer_limit_s)
            if isinstance(tally, str):
                print(f"  {peer.name:40} {tally}", flush=True)
                continue
            if rows.get(peer.name, of) is None:
                rows.keep(of, tally)
            tallies.append(_told(tally))
            if tally.num_texts < len(stream.texts):
                over = (
                    f"the first {tally.num_texts} texts alone: {self.peer_limit_s:.0f} s were over"
                )
                print(f"    {over}", flush=True)
        return tallies

    def _wants(self, name: str) -> bool:
        return not self.ways or any(way in name for way in self.ways)

    async def _score(self, stream: Stream, nearest: Nearest) -> None:
        await self.scores.prepare(
            (stream.texts[asked], stream.texts[stored], cosine)
            for asked in range(1, len(stream.texts))
            for stored, cosine in nearest.before(asked)
        )

    def _deciders(self, stream: Stream, intents: Sequence[str]) -> list[tuple[Decider, bool]]:
        pooled = PooledThresholds.matching(self.scores.judge.fingerprint)
        chosen: list[tuple[Decider, bool]] = []
        for budget in BUDGETS:
            ours = partial(
                Learning, stream=stream, intents=intents, scores=self.scores, pooled=pooled,
                budget=budget, shadow_share=self.shadow_share,
            )  # fmt: skip
            name = f"{OURS}, {budget:.0%}"
            chosen += [
                (ours(f"{name}, proven start", start="proven"), True),
                (ours(f"{name}, default"), True),
                (ours(f"{name}, default, complaints", told="complaints", shadow_share=0.0), True),
                (ours(f"{name}, default, all compared", shadow_share=1.0), True),
            ]
        chosen += [
            (Static(0.95, "cosine >= 0.95"), True),
            (Static(0.98, "cosine >= 0.98"), True),
            (Static(0.9, "cosine >= 0.90 (RedisVL's default)"), True),
        ]
        for delta in BUDGETS:
            for keeps_all in (False, True):
                rule = VCacheRule(delta)
                rule.name += ", all misses kept" if keeps_all else ""
                chosen.append((rule, keeps_all))
        return chosen


def _told(tally: Tally) -> Tally:
    print(" ", tally, flush=True)
    for intent, asked in tally.falls.items():
        print(f"    {intent} fell back at text {asked}: {tally.until(asked)}", flush=True)
    return tally


async def main(options: argparse.Namespace) -> None:
    """Play the streams that were asked for."""
    embedder_path = prepare(default_models_dir(os.environ)).embedder_path
    encoder = BertEncoder(embedder_path)
    embedder = ThreadedEmbedder(encoder)
    verifier = ThreadedVerifier(load_verifier("bundled", embedder_path))
    kept = KeptVerifier(verifier, options.kept)
    judge = Judge(await Scorer.matching(embedder), encoder.knows_word, kept)
    detect = IntentClassifier()
    await IntentTeacher(embedder, {}, options.kept).teach_bundled(detect)
    bench = Bench(
        encoder, detect, PairScores(judge, kept), options.kept, options.shadow_share, options.ways,
        options.peer_seconds,
    )  # fmt: skip
    for name in options.only or STREAMS:
        pairs = STREAMS[name](options.sets)[: options.pairs]
        tallies = await bench.run(name, pairs)
        if options.list:
            _list(options.list, name, Stream.of(pairs), tallies)
    await verifier.close()
    await embedder.close()


def _list(path: Path, name: str, stream: Stream, tallies: Sequence[Tally]) -> None:
    with path.open("a", encoding="utf-8") as file:
        for tally in tallies:
            for stored, asked in tally.wrong_pairs:
                row = [name, tally.name.strip(), stream.texts[stored], stream.texts[asked]]
                file.write("\t".join(row) + "\n")


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    sets = os.environ.get("STRATA_BENCH", "../shared/data/semantic")
    parser.add_argument("--sets", type=Path, default=Path(sets), help="folder of labelled pairs")
    parser.add_argument("--pairs", type=int, default=3_000, help="of each set, at most")
    parser.add_argument("--only", nargs="*", choices=list(STREAMS))
    parser.add_argument("--ways", nargs="*", default=(), help="parts of the names to run; all")
    parser.add_argument("--list", type=Path, help="file that hits labelled wrong are added to")
    share = "of hits that are answered afresh and compared"
    parser.add_argument("--shadow-share", type=float, default=0.1, help=share)
    most = "seconds a peer may take for a stream"
    parser.add_argument("--peer-seconds", type=float, default=800.0, help=most)
    kept = Path.home() / ".cache/strata-bench/streams"
    parser.add_argument("--kept", type=Path, default=kept, help="folder of numbers between runs")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = read_options()
    if chosen.sets.is_dir():
        asyncio.run(main(chosen))
    else:
        print(f"left out: no labelled pairs in {chosen.sets}; name their folder in STRATA_BENCH")
