"""Whether promised bounds hold, by simulation with known truth.

usage: python -m tests.bench.semantic.bench_coverage [--runs N]

One line a kind of traffic: how often a threshold of its own broke its budget, how often the upper
bound was under the true share (both promised in 5% at most), how often labels proved anything, and
the median threshold. Then drift: how often it was noticed before the cumulated wrong share passed
twice the budget, and how many labels lie between false alarms.
"""

import argparse
import statistics
from typing import Any

import numpy as np

from semantic_layer.calibration.binomial import interval
from semantic_layer.calibration.calibration import Budgets, calibrate
from semantic_layer.calibration.drift import alarms
from semantic_layer.calibration.labels import Label
from semantic_layer.calibration.thresholds import Thresholds
from tests.semantic_layer.labelled_traffic import SCORER, Traffic

KINDS: dict[str, dict[str, Any]] = {
    "300 labels": {"num": 300},
    "3,000 labels": {"num": 3_000},
    "10% of near-misses": {"num": 12_000, "shadow": 0.5, "gray": 0.1},
    "900 entries, alike": {"num": 3_000, "entries": 900},
}
BASE = Thresholds(priors={"general": 0.92})


def cover(name: str, budget: float, slope: float, runs: int) -> str:
    """Simulate one kind of traffic."""
    kind = dict(KINDS[name])
    num, entries = kind.pop("num"), kind.pop("entries", None)
    broken = low = 0
    own = []
    for seed in range(runs):
        traffic = Traffic(np.random.default_rng(seed), slope=slope, entries=entries)
        labels = traffic.labels(num, **kind)
        found = calibrate(labels, scorer=SCORER, budgets=Budgets(budget), base=BASE)
        general = found.intents["general"]
        truth = traffic.wrong_share(general.threshold)
        low += truth > general.upper
        if general.source == "own":
            own.append(general.threshold)
            broken += truth > budget
    middle = f"{statistics.median(own):.3f}" if own else "-"
    return (
        f"{name:20} budget {budget:.0%} wrong at 0.5: {slope / 6:.1%}  "
        f"broken {_share(broken, runs)}  bound too low {_share(low, runs)}  "
        f"own {len(own) / runs:.0%}, median {middle}"
    )


def drift(budget: float, times: float, runs: int) -> str:
    """Simulate streams that turn bad after 4 / budget labels."""
    rng = np.random.default_rng(9)
    late = 0
    for _ in range(runs):
        healthy = rng.random(int(4 / budget)) < 0.3 * budget
        wrong = np.concatenate((healthy, rng.random(int(20 / budget)) < times * budget))
        share = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
        passed = np.nonzero((share > 2 * budget) & (np.arange(len(wrong)) >= len(healthy)))[0]
        noticed = [alarm.at for alarm in alarms(_served(wrong), budget)]
        late += min(noticed, default=np.inf) > min(passed, default=len(wrong))
    return f"drift to {times:.0f} x budget {budget:.0%}: too late {_share(late, runs)}"


def _served(wrong: np.ndarray) -> list[Label]:
    return [
        Label(
            label_id="x", intent="general", score=0.95, right=not bad, source="shadow",
            served=True, at=float(i),
        )
        for i, bad in enumerate(wrong)
    ]  # fmt: skip


def _share(count: int, runs: int) -> str:
    low, high = interval(count, runs)
    return f"{count / runs:.1%} [{low:.1%}, {high:.1%}]"


def main(runs: int) -> None:
    """Print all lines."""
    for budget in (0.01, 0.02, 0.05):
        for name in KINDS:
            for factor in (1, 8):
                print(cover(name, budget, factor * budget, runs), flush=True)
    for budget in (0.01, 0.02, 0.05):
        for times in (3.0, 10.0, 20.0):
            print(drift(budget, times, runs), flush=True)
    for share in (0.25, 0.5, 0.9):
        wrong = np.random.default_rng(2).random(60_000) < share * 0.01
        num = len(alarms(_served(wrong), 0.01))
        print(f"false alarms at {share:.0%} of the budget: {num} in 60,000 labels", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    main(parser.parse_args().runs)
