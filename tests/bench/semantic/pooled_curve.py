"""Fit the default thresholds: what each score proves on questions that nothing was trained on.

usage: python -m tests.bench.semantic.pooled_curve [--write] [--most N]

Rows are the held-out authored groups that calibrate (English and Chinese), each question with its
rewordings and traps; every score is moved to the scale of one intent, so the thresholds of all
intents are fitted as one family, in force together. Groups have about three traps for two
rewordings, which no traffic has: they are weighed as if one in ten near questions were a trap,
which is assumed, not measured. The bound of a threshold is that of its wrong share with the traps'
served share at its upper 95% end (Clopper-Pearson) and the rewordings' as seen. Then the thresholds
are held against the groups that measure.
"""

import argparse
import asyncio
import json
import os
import random
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from gateway.bundled import default_models_dir, prepare
from semantic_layer import IntentClassifier, Scorer, ThreadedEmbedder, ThreadedVerifier
from semantic_layer.calibration.binomial import interval, upper_bound
from semantic_layer.calibration.pooled import DATA, PooledThresholds, log_odds, shifted
from semantic_layer.calibration.settled import UNPROVEN
from semantic_layer.calibration.thresholds import (
    DEFAULT_PRIOR,
    PRIORS,
    Thresholds,
    distance,
)
from semantic_layer.calibration.walk import grid
from semantic_layer.decision import Judge
from semantic_layer.intents.intent_learning import IntentTeacher
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.models.verifier import load_verifier
from tests.bench.fit_scorer import embed
from tests.bench.semantic.authored import read_groups
from tests.bench.semantic.curves import Kinded, Scored, fitted_sets, scored

BUDGETS = (0.01, 0.02, 0.05)
TRAPS_IN_TRAFFIC = 0.1  # of questions near a stored one
LEAST = 0.8  # of `REFERENCE`; from .5 on, 13% of PAWS-X' and of swapped questions passed
MOST_BUDGET = 0.2
STATEMENT = (
    "Fitted by tests/bench/semantic/pooled_curve.py on authored questions (Apache-2.0) that the "
    "verifier was not trained on."
)


def calibration_sets() -> list[Kinded]:
    """Return the authored questions that calibrate, each with its rewordings and traps."""
    chosen = [group for group in read_groups() if group.is_held_out and not group.is_measured]
    return [Kinded(pair, kind) for group in chosen for pair, kind in group.asked()]


def common_scores(rows: Sequence[Scored], intents: Sequence[str]) -> np.ndarray:
    """Return the scores as if all were of one intent."""
    return np.array(
        [
            shifted(row.score, -distance(PRIORS.get(intent, DEFAULT_PRIOR)))
            for row, intent in zip(rows, intents, strict=True)
        ]
    )


def bound(scores: np.ndarray, same: np.ndarray, threshold: float) -> float:
    """Return the upper 95% bound of the wrong share among served ones, in traffic's mix."""
    served = scores >= threshold
    traps = upper_bound(int((served & ~same).sum()), int((~same).sum()))
    right = float((served & same).sum()) / float(same.sum())
    wrong = TRAPS_IN_TRAFFIC * traps
    return wrong / (wrong + (1 - TRAPS_IN_TRAFFIC) * right) if right else 1.0


def knots(scores: np.ndarray, same: np.ndarray) -> list[tuple[float, float]]:
    """Return (budget, threshold), walking down from where the bound is least, never under it."""
    steps = [float(step) for step in grid(LEAST)[1:]]
    bounds = [bound(scores, same, step) for step in steps]
    found: list[tuple[float, float]] = []
    start = int(np.argmin(bounds))
    for here, step in zip(np.maximum.accumulate(bounds[start:]), steps[start:], strict=True):
        if here > MOST_BUDGET:
            break
        budget, threshold = round(float(here), 5), round(step, 5)
        if found and found[-1][0] == budget:
            found.pop()
        found.append((budget, threshold))
    return found


def expected(rows: Sequence[Scored]) -> tuple[float, float]:
    """Fit how the odds of "wrong" fall with a pair's score, in traffic's mix: a logistic curve."""
    open_rows = [row for row in rows if 0 < row.score < UNPROVEN]
    same = sum(row.pair.same for row in rows)
    of = {True: (1 - TRAPS_IN_TRAFFIC) / same, False: TRAPS_IN_TRAFFIC / (len(rows) - same)}
    model = LogisticRegression(C=np.inf).fit(
        [[log_odds(row.score)] for row in open_rows],
        [not row.pair.same for row in open_rows],
        [len(rows) * of[row.pair.same] for row in open_rows],
    )
    return float(model.intercept_[0]), float(model.coef_[0][0])


def told(name: str, rows: Sequence[Scored], limits: Sequence[float]) -> str:
    """Say what serving at these thresholds comes to, counted as the groups have it."""
    hits = [row.score >= limit for row, limit in zip(rows, limits, strict=True)]
    same = [hit for hit, row in zip(hits, rows, strict=True) if row.pair.same]
    traps = [hit for hit, row in zip(hits, rows, strict=True) if not row.pair.same]
    low, high = interval(sum(traps), len(traps))
    return (
        f"{name:24} served of same {sum(same) / len(same):6.1%} ({len(same)})  "
        f"of traps {sum(traps) / len(traps):6.2%} [{low:.2%}, {high:.2%}] ({len(traps)})"
    )


async def main(options: argparse.Namespace) -> None:
    """Fit, show, and write the data file when asked to."""
    folder = prepare(default_models_dir(os.environ)).embedder_path
    encoder = BertEncoder(folder)
    embedder = ThreadedEmbedder(encoder)
    verifier = ThreadedVerifier(load_verifier("bundled", folder))
    judge = Judge(await Scorer.matching(embedder), encoder.knows_word, verifier)
    detect = IntentClassifier()
    with tempfile.TemporaryDirectory() as place:
        await IntentTeacher(embedder, {}, Path(place)).teach_bundled(detect)

    async def judged(pairs: list[Kinded]) -> tuple[list[Scored], list[str]]:
        random.Random(5).shuffle(pairs)
        rows = await scored(pairs[: options.most], judge, encoder)
        vectors = embed([row.pair.other for row in rows], encoder)
        return rows, [detect(row.pair.other, vectors[row.pair.other]) for row in rows]

    rows, intents = await judged(calibration_sets())
    same = np.array([row.pair.same for row in rows])
    found = knots(common_scores(rows, intents), same)
    pooled = PooledThresholds(judge.fingerprint, found)
    print(f"{len(found)} knots, budgets {found[0][0]:.2%} to {found[-1][0]:.2%}")
    intercept, slope = expected(rows)
    print(f"log odds of wrong: {intercept:.4f} + {slope:.4f} x those of the score")
    measured = await judged(fitted_sets())
    for budget in BUDGETS:
        limits = Thresholds.within(budget, pooled=pooled)
        shown = {name: round(limits.of(name), 3) for name in PRIORS}
        print(f"budget {budget:.0%}: {shown}")
        for name, (each, kinds) in {"fitted": (rows, intents), "measured": measured}.items():
            print(" ", told(name, each, [limits.of(kind) for kind in kinds]))
    if options.write:
        data = {
            "statement": STATEMENT,
            "fingerprint": judge.fingerprint,
            "knots": found,
            "expected": {"intercept": round(intercept, 4), "slope": round(slope, 4)},
        }
        path = files("semantic_layer") / "data" / DATA
        path.write_text(json.dumps(data) + "\n", encoding="utf-8")  # type: ignore[attr-defined]
    await verifier.close()
    await embedder.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=4_000, help="pairs of each half")
    parser.add_argument("--write", action="store_true", help="write the package's data file")
    asyncio.run(main(parser.parse_args()))
