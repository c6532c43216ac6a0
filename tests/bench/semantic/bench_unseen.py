"""Pairs whose author had not seen the rules, through a whole cache: hits and wrong hits by kind.

usage: python -m tests.bench.semantic.bench_unseen [--lines even|odd|all] [--budget B] [FILE ...]

``unseen/`` holds questions and chats, English and Chinese, in the style of the fow-cache set. Rules
were made in sight of the odd lines. The even ones are for measuring only: this prints their totals,
and nobody is to read them to mend what they show. Each pair is stored and asked in a cache of its
own, with intents, at the thresholds a gateway begins with, both ways round; every way counts.
Intervals: Clopper-Pearson, 95%; both ways of a pair are no independent trials, so they are narrow.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    CacheControl,
    CacheQuery,
    Hit,
    IntentClassifier,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    ThreadedVerifier,
    load_encoder,
    load_verifier,
)
from semantic_layer.intents.intent_learning import IntentTeacher
from semantic_layer.policy import CachePolicy
from tests.bench.bench_semantic import interval
from tests.bench.semantic.bench_conversation import cache_of

UNSEEN = Path(__file__).parent / "unseen"
PATIENT = CachePolicy(verify_deadline_s=60.0, embed_deadline_s=60.0)


@dataclass(frozen=True, slots=True)
class Parts:
    """What all caches have in common."""

    embedder: ThreadedEmbedder
    scorer: Scorer
    verifier: ThreadedVerifier
    detect: IntentClassifier
    budget: float

    def cache(self) -> SemanticCache:
        """Return an empty cache at the thresholds a gateway begins with."""
        parts = (self.embedder, self.scorer, self.verifier, self.budget)
        return cache_of(*parts, detect=self.detect, policy=PATIENT)


def query(side: str | list[dict[str, str]]) -> CacheQuery:
    """Ask a question, or a chat, as a client does."""
    messages = [{"role": "user", "content": side}] if isinstance(side, str) else side
    return CacheQuery("t", "m", "f", {"model": "m", "messages": messages})


async def is_served(parts: Parts, stored: Any, asked: Any) -> bool:
    """Say whether the answer to one is served to the other."""
    cache = parts.cache()
    await cache.insert(query(stored), CacheControl(), b"A", answer_text="A")
    return isinstance(await cache.lookup(query(asked), CacheControl()), Hit)


def rows_of(path: Path, lines: str) -> Iterator[dict[str, Any]]:
    """Read the odd lines (the first, the third …), the even ones, or all."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if lines == "all" or (number % 2 == 1) == (lines == "odd"):
            yield json.loads(line)


async def play(parts: Parts, path: Path, lines: str) -> None:
    """Print the shares of one file, by kind."""
    served, asked = Counter[tuple[bool, str]](), Counter[tuple[bool, str]]()
    for row in rows_of(path, lines):
        kind = row.get("category") or row["subtype"]
        for one, other in ((row["a"], row["b"]), (row["b"], row["a"])):
            hit = await is_served(parts, one, other)
            for name in ("", kind):
                served[row["same_answer"], name] += hit
                asked[row["same_answer"], name] += 1
    for is_same in (True, False):
        print(f"{path.stem}, {lines} lines: {'same answer' if is_same else 'traps'} served")
        for same, name in sorted(asked):
            if same is is_same:
                count, num = served[same, name], asked[same, name]
                low, high = interval(count, num)
                print(f"  {name or 'all':28} {count:4}/{num:<4} {count / num:6.1%} "
                      f"[{low:.1%}, {high:.1%}]")  # fmt: skip


async def main(options: argparse.Namespace) -> None:
    """Play the files that were asked for."""
    folder = prepare(default_models_dir(os.environ)).embedder_path
    embedder = ThreadedEmbedder(load_encoder(folder))
    verifier = ThreadedVerifier(load_verifier("bundled", folder))
    detect = IntentClassifier()
    with tempfile.TemporaryDirectory() as kept:
        await IntentTeacher(embedder, {}, Path(kept)).teach_bundled(detect)
    scorer = await Scorer.matching(embedder)
    parts = Parts(embedder, scorer, verifier, detect, options.budget)
    for path in options.files or sorted(UNSEEN.glob("*.jsonl")):
        await play(parts, path, options.lines)
    await verifier.close()
    await embedder.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--lines", choices=("even", "odd", "all"), default="even")
    parser.add_argument("--budget", type=float, default=0.01)
    asyncio.run(main(parser.parse_args()))
