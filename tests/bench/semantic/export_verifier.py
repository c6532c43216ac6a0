"""Write a trained verifier as the package ships it: small weights and a calibration.

usage: python -m tests.bench.semantic.export_verifier CHECKPOINT EMBEDDER_FOLDER OUT_FOLDER
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import first_veto
from semantic_layer.models.joint_encoder import JointEncoder, upper_layers
from semantic_layer.models.scorer import says_the_same
from semantic_layer.models.weight_delta import pack
from semantic_layer.text.analysis import analyse
from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic.authored import read_groups
from tests.bench.semantic.joint_model import MOST_TOKENS

NAME = "verifier.safetensors"
BATCH = 16
JOIN = 6
CEILING, FLOOR = 0.995, 0.001
STATEMENT = (
    "Upper layers of multilingual-e5-small (MIT), trained on question groups written for Strata "
    "(tests/bench/semantic/authored, Apache-2.0), 70,000 labelled Quora pairs (text under Quora's "
    "terms, none kept here), half of Redis' LangCache pairs (MIT) and of PAWS-X's Chinese "
    "development pairs, GPTCache's rewordings (MIT), STS benchmark extremes (CC BY-SA 4.0), and "
    "edits of their texts and of banking77's (CC BY 4.0) and clinc150's (CC BY 3.0). Calibrated "
    "(Platt) on authored questions that were not trained on, each with its rewordings and traps, "
    "as far as guards leave them open, with traps and rewordings counted as equally frequent."
)


def platt(logits: np.ndarray, same: np.ndarray, steps: int = 200) -> tuple[float, float]:
    """Fit slope and offset of a logistic map by Newton's method, as if traps and same were even.

    Source: Platt, Probabilistic Outputs for Support Vector Machines (1999), with his smoothed
    targets (n+1)/(n+2), which keep the map from certainty.
    """
    up, down = same.sum(), len(same) - same.sum()
    target = np.where(same, (up + 1) / (up + 2), 1 / (down + 2))
    weight = np.where(same, 0.5 / up, 0.5 / down) * len(same)
    x = np.c_[logits, np.ones_like(logits)]
    theta = np.zeros(2)
    for _ in range(steps):
        p = 1 / (1 + np.exp(-np.clip(x @ theta, -30, 30)))
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(2)
        theta -= np.linalg.solve(hessian, x.T @ (weight * (p - target)))
    return float(theta[0]), float(theta[1])


def knots(slope: float, offset: float) -> list[list[float]]:
    """Return (logit, probability) points of the map, monotone and clipped."""
    grid = np.linspace(-12, 12, 97)
    p = np.clip(1 / (1 + np.exp(-(slope * grid + offset))), FLOOR, CEILING)
    return [[round(float(x), 3), round(float(y), 5)] for x, y in zip(grid, p, strict=True)]


def write(checkpoint: Path, embedder: Path, folder: Path, calibration: list[list[float]]) -> Path:
    """Write weights and description into a folder; return the path of the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = torch.load(checkpoint)
    layers = {name.split(".")[1] for name in tensors if name.startswith("upper.")}
    save_file(pack(tensors, upper_layers(embedder, JOIN, len(layers))), folder / NAME)
    data = {
        "data_statement": STATEMENT,
        "join": JOIN,
        "upper": len(layers),
        "most_tokens": MOST_TOKENS,
        "calibration": calibration,
    }
    text = json.dumps(data, ensure_ascii=False)
    (folder / NAME).with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    return folder / NAME


def calibration_pairs(groups: Path) -> list[LabelledPair]:
    """Return held-out questions that are not measured, with what rules leave open."""
    chosen = [g for g in read_groups(groups) if g.is_held_out and not g.is_measured]
    pairs = [pair for group in chosen for pair, _ in group.asked()]
    return [pair for pair in pairs if _is_open(pair)]


def _is_open(pair: LabelledPair) -> bool:
    comparison = compare(analyse(pair.other), analyse(pair.one))
    return first_veto(comparison) is None and not says_the_same(comparison)


def main(options: argparse.Namespace) -> None:
    """Write the files, once without and once with the calibration."""
    weights = write(options.checkpoint, options.embedder, options.out, [[-1.0, 0.0], [1.0, 1.0]])
    pairs = calibration_pairs(options.groups)
    encoder = JointEncoder(options.embedder, weights)
    logits = np.array(
        [
            logit
            for start in range(0, len(pairs), BATCH)
            for logit in encoder.logits([(p.one, p.other) for p in pairs[start : start + BATCH]])
        ]
    )
    slope, offset = platt(logits, np.array([p.same for p in pairs]))
    write(options.checkpoint, options.embedder, options.out, knots(slope, offset))
    print(f"{len(pairs)} pairs, {sum(p.same for p in pairs)} same: {slope=:.3f} {offset=:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("embedder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--groups", type=Path, default=Path(__file__).parent / "authored")
    main(parser.parse_args())
