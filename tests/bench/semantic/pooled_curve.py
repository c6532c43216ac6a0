"""The pooled calibration: what each score means on authored pairs that nothing was fitted on.

usage: python -m tests.bench.semantic.pooled_curve [--most N]

Prints, for English and Chinese together, the threshold that keeps the upper 95% bound of the wrong
share among served pairs within each budget (`semantic_layer.walk`), the share of same-answer pairs
served there, and the same at the thresholds that ship. Traps are as frequent as the groups have
them, about one in two, which no traffic is: real shares of wrong hits are lower.
"""

import argparse
import asyncio
import os
import random
from collections.abc import Sequence

from gateway.bundled import default_models_dir, prepare
from semantic_layer import Label, Scorer, ThreadedEmbedder, ThreadedVerifier, load_verifier
from semantic_layer.bert_encoder import BertEncoder
from semantic_layer.binomial import interval
from semantic_layer.decision import Judge
from semantic_layer.sample import Sample
from semantic_layer.thresholds import PRIORS
from semantic_layer.walk import lowest_within, proves_once
from tests.bench.semantic.curves import Scored, fitted_sets, scored

BUDGETS = (0.01, 0.02, 0.05)


def sample_of(rows: Sequence[Scored]) -> Sample:
    """Return the rows as labels; pairs with the same stored text are one entry's."""
    return Sample.of(
        [
            Label(
                label_id=str(number),
                intent="general",
                score=row.score,
                right=row.pair.same,
                source="import",
                served=False,
                at=float(number),
                stored_text=row.pair.one,
                text=row.pair.other,
            )
            for number, row in enumerate(rows)
        ]
    )


def told(name: str, rows: Sequence[Scored], threshold: float) -> str:
    """Say what serving at a threshold comes to."""
    same = [row for row in rows if row.pair.same]
    hits = [row for row in rows if row.score >= threshold]
    wrong = sum(not row.pair.same for row in hits)
    low, high = interval(wrong, len(hits))
    share = sum(row.score >= threshold for row in same) / len(same)
    return (
        f"{name:24} threshold {threshold:.4f}  served of same {share:6.1%}  "
        f"wrong of served {wrong:3}/{len(hits):<5} [{low:.2%}, {high:.2%}]"
    )


async def main(most: int) -> None:
    """Print the table."""
    folder = prepare(default_models_dir(os.environ)).embedder_path
    encoder = BertEncoder(folder)
    embedder = ThreadedEmbedder(encoder)
    verifier = ThreadedVerifier(load_verifier("bundled", folder))
    judge = Judge(await Scorer.matching(embedder), encoder.knows_word, verifier)
    pairs = fitted_sets()
    random.Random(5).shuffle(pairs)
    rows = await scored(pairs[:most], judge, encoder)
    sample = sample_of(rows)
    for budget in BUDGETS:
        found = lowest_within(sample, budget, proves=proves_once)
        print(
            f"budget {budget:.0%}: not proven"
            if found is None
            else told(f"budget {budget:.0%}", rows, found)
        )
    for threshold in sorted({*PRIORS.values(), 0.85, 0.8, 0.7, 0.6, 0.5}, reverse=True):
        print(told("at", rows, threshold))
    await verifier.close()
    await embedder.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=2_500, help="pairs")
    asyncio.run(main(parser.parse_args().most))
