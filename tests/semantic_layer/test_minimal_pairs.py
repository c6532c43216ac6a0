"""Pairs of questions that look alike, of every kind, each on the side where it belongs.

``refused`` ones have another answer, ``served`` ones the same; over ``open`` ones no guard has a
veto, their score alone decides. Written for Strata, Apache-2.0.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch

from semantic_layer import (
    MemoryResponseStore,
    MemoryVectorIndex,
    PooledThresholds,
    Scorer,
    ThreadedEmbedder,
    ThreadedVerifier,
    Thresholds,
    detect_intent,
    load_verifier,
)
from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import ruling
from semantic_layer.decision import Judge
from semantic_layer.guarded import GuardedParts
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.policy import CachePolicy
from semantic_layer.text.analysis import analyse
from semantic_layer.weighing import Found
from tests.semantic_layer.entries import entry_of

Pair = tuple[str, str]
BUDGET = 0.01
BATCH = 64
NUM_THREADS = (
    2  # on any machine: with another number sums are rounded otherwise, by .004 of a score
)


def pairs_by_side() -> Mapping[str, Sequence[Pair]]:
    """Read the pairs, each both ways round, by where they belong."""
    path = Path(__file__).with_name("minimal_pairs.jsonl")
    sides: dict[str, list[Pair]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        sides[row["side"]] += [(row["one"], row["other"]), (row["other"], row["one"])]
    return sides


PAIRS = pairs_by_side()


def is_vetoed(pair: Pair, encoder: BertEncoder) -> bool:
    """Say whether a guard refuses a pair, which no score takes back."""
    one, other = map(analyse, pair)
    return ruling(compare(one, other, encoder.knows_word)).veto is not None


async def served_of(pairs: Sequence[Pair], encoder: BertEncoder, folder: Path) -> set[Pair]:
    """Return the (asked, stored) pairs that are served by the models and thresholds at defaults."""
    embedder = ThreadedEmbedder(encoder)
    verifier = ThreadedVerifier(load_verifier("bundled", folder))
    unhurried = CachePolicy(verify_deadline_s=60.0)
    parts = GuardedParts(
        MemoryResponseStore(),
        MemoryVectorIndex(encoder.dim),
        None,
        verifier,
        unhurried,
        on_failure=None,
    )
    judge = Judge(await Scorer.matching(embedder), encoder.knows_word, parts.verifier)
    pooled = PooledThresholds.matching(judge.fingerprint)
    assert pooled is not None, "thresholds of other models"
    thresholds = Thresholds.within(BUDGET, pooled=pooled)
    texts = sorted({text for pair in pairs for text in pair}, key=len)
    served = set()
    try:
        chunks = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
        rows = [row for chunk in chunks for row in await embedder.embed(chunk)]
        vectors = dict(zip(texts, rows, strict=True))
        for asked, stored in pairs:
            found = Found(float(vectors[asked] @ vectors[stored]), entry_of(stored))
            decision = await judge.decide(asked, thresholds.of(detect_intent(asked)), [found])
            if decision.entry is not None:
                served.add((asked, stored))
    finally:
        await verifier.close()
        await embedder.close()
    return served


@pytest.fixture(scope="module")
def encoder(bundled_embedder: Path) -> BertEncoder:
    return BertEncoder(bundled_embedder)


@pytest.fixture(scope="module")
def served(encoder: BertEncoder, bundled_embedder: Path) -> set[Pair]:
    pairs = [pair for pair in (*PAIRS["refused"], *PAIRS["served"]) if not is_vetoed(pair, encoder)]
    before = torch.get_num_threads()
    torch.set_num_threads(NUM_THREADS)
    try:
        return asyncio.run(served_of(pairs, encoder, bundled_embedder))
    finally:
        torch.set_num_threads(before)


def test_no_pair_is_served_when_its_answers_differ(served: set[Pair]) -> None:
    """No kind of small difference that changes the answer passes as a rewording."""
    assert [pair for pair in PAIRS["refused"] if pair in served] == []


def test_every_pair_is_served_when_only_the_wording_differs(served: set[Pair]) -> None:
    """Typing, politeness, spelling and word order cost no hit."""
    assert [pair for pair in PAIRS["served"] if pair not in served] == []


def test_no_guard_vetoes_when_a_rewording_is_left_to_its_score(encoder: BertEncoder) -> None:
    """What no rule can tell to be the same is left to the verifier."""
    assert [pair for pair in PAIRS["open"] if is_vetoed(pair, encoder)] == []
