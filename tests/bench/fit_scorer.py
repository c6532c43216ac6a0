"""Fit the bundled scorer and write its numbers; run by hand when guards or features change.

usage: python -m tests.bench.fit_scorer PAIR_SETS_FOLDER EMBEDDER_FOLDER [--write]

Natural pairs (Quora, whose labels call about one same pair in twelve different) are fitted through
that noise; generated pairs are exact. What differs in nothing or in weak words only is not fitted:
rules and a curve over measured shares decide it.
"""

import json
import random
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import first_veto
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.models.features import NAMES, features
from semantic_layer.models.scorer import BUNDLED, says_nearly_the_same
from semantic_layer.text.analysis import analyse
from tests.bench import pair_sets
from tests.bench.minimal_edits import Neighbours, changed, retyped
from tests.bench.pair_sets import LabelledPair

Array = npt.NDArray[np.float64]

NOISE = 0.08  # share of same pairs that Quora's labels call different; read off 120 pairs by eye
GENERATED_WEIGHT = 0.5
NUM_GENERATED = 2_500  # of each kind
NEAR = ((0.90, 0.70), (0.95, 0.88), (0.97, 0.93), (0.98, 0.97), (0.99, 0.985), (1.0, 0.985))
CEILING = 0.985
LEAST_SIMILARITY = 0.86
LEAST_NEAREST, LEAST_VERIFIED = 0.89, 0.92  # see Scorer
PROBES = (
    ("How do I bake bread?", "What is the way to bake bread?"),
    ("How do I bake bread?", "Who painted the ceiling?"),
    ("怎么烤面包？", "如何烤面包"),
    ("怎么烤面包？", "天花板是谁画的？"),
)
STATEMENT = (
    "Coefficients fitted on 16,000 labelled Quora question pairs (GPTCache's benchmark; text under "
    "Quora's terms, none of it kept here) and 5,000 pairs generated from their questions, with 8% "
    "label noise assumed. 'near' is a curve over measured shares of right answers among texts that "
    "differ in weak words or order only. Measured, never fitted, on question_pairs_dev (CC BY 4.0, "
    "Mabon ap Gwyn, fow-cache), Redis' LangCache pairs (MIT), LCQMC and PAWS-X."
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Feature rows ``(n, features)`` of pairs that no guard vetoes and no rule decides."""

    x: Array
    same: Array

    def __add__(self, other: "Rows") -> "Rows":
        return Rows(np.vstack([self.x, other.x]), np.concatenate([self.same, other.same]))


def rows_of(pairs: list[LabelledPair], encoder: BertEncoder) -> Rows:
    """Compute the features of the pairs that the logistic model decides."""
    vectors = embed([text for pair in pairs for text in (pair.one, pair.other)], encoder)
    rows, same = [], []
    for pair in pairs:
        comparison = compare(analyse(pair.one), analyse(pair.other), encoder.knows_word)
        if first_veto(comparison) is None and not says_nearly_the_same(comparison):
            rows.append(features(float(vectors[pair.one] @ vectors[pair.other]), comparison))
            same.append(float(pair.same))
    return Rows(np.array(rows), np.array(same))


def embed(texts: list[str], encoder: BertEncoder) -> dict[str, npt.NDArray[np.float32]]:
    """Embed each text once; texts past the window are cut, which only a bench may do."""
    unique = sorted(set(texts), key=len)
    vectors: dict[str, npt.NDArray[np.float32]] = {}
    for start in range(0, len(unique), 32):
        batch = unique[start : start + 32]
        cut = [text[:600] for text in batch]
        vectors.update(zip(batch, encoder.encode(cut), strict=True))
    return vectors


def generated(pairs: list[LabelledPair], encoder: BertEncoder, rng: random.Random) -> Rows:
    """Make pairs from questions and compute their features."""
    questions = [p.one for p in pairs if 4 <= len(p.one.split()) <= 16 and '"' not in p.one]
    similar = _neighbours(questions, encoder)
    made = []
    for question in rng.sample(questions, min(NUM_GENERATED, len(questions))):
        made += [pair for pair in (changed(question, similar, rng), retyped(question, rng)) if pair]
    return rows_of(made, encoder)


def fit(natural: Rows, made: Rows, steps: int = 4_000) -> tuple[Array, float]:
    """Fit coefficients and bias by maximum likelihood under one-sided label noise (Adam)."""
    both = natural + made
    x = np.c_[both.x, np.ones(len(both.x))]
    noise = np.r_[np.full(len(natural.x), NOISE), np.zeros(len(made.x))]
    weight = np.r_[np.ones(len(natural.x)), np.full(len(made.x), GENERATED_WEIGHT)]
    theta = np.zeros(x.shape[1])
    mean, spread = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, steps + 1):
        true = sigmoid(x @ theta)
        seen = np.clip((1 - noise) * true, 1e-9, 1 - 1e-9)
        slope = np.where(both.same == 1, 1 / seen, -1 / (1 - seen)) * (1 - noise)
        gradient = -(x * (weight * slope * true * (1 - true))[:, None]).sum(0) / weight.sum()
        gradient += 1e-3 * np.r_[theta[:-1], 0]
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.999 * spread + 0.001 * gradient**2
        rate = 0.05 if step < 0.7 * steps else 0.01
        theta -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
    return theta[:-1], float(theta[-1])


def sigmoid(z: Array) -> Array:
    """Return the logistic function."""
    return np.asarray(1 / (1 + np.exp(-np.clip(z, -60, 60))))


def main(folder: Path, embedder: Path, *, write: bool) -> None:
    """Fit, print, and write the data file when asked to."""
    encoder = BertEncoder(embedder)
    natural_pairs = pair_sets.quora_train(folder)
    made = generated(natural_pairs, encoder, random.Random(11))
    weights, bias = fit(rows_of(natural_pairs, encoder), made)
    data = _data(weights, bias, encoder)
    print(json.dumps(data["weights"], indent=1), data["bias"])
    if write:
        path = Path(str(files("semantic_layer") / "data" / BUNDLED))
        path.write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _data(weights: Array, bias: float, encoder: BertEncoder) -> dict[str, Any]:
    probes = []
    for texts in PROBES:
        one, other = encoder.encode(texts)
        probes.append({"texts": list(texts), "cosine": round(float(one @ other), 4)})
    return {
        "data_statement": STATEMENT,
        "probes": probes,
        "least_similarity": LEAST_SIMILARITY,
        "least_nearest": LEAST_NEAREST,
        "least_verified": LEAST_VERIFIED,
        "ceiling": CEILING,
        "near": [list(knot) for knot in NEAR],
        "bias": round(bias, 4),
        "weights": {name: round(float(w), 4) for name, w in zip(NAMES, weights, strict=True)},
    }


def _neighbours(questions: list[str], encoder: BertEncoder) -> Neighbours:
    words = {
        word.strip("?,.!").casefold() for question in questions for word in question.split(" ")
    }
    known = sorted(w for w in words if len(w) > len("the") and encoder.knows_word(w))
    vectors = embed(known, encoder)
    return Neighbours(known, np.vstack([vectors[word] for word in known]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), write="--write" in sys.argv)
