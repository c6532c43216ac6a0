"""What the bundled embedder and verifier take: a question, one pair, five pairs.

usage: python -m tests.bench.semantic.bench_verifier [--threads N] [--repeats N]

Prints the median and the least milliseconds by the clock, and the median of the calling thread's
own CPU time: with one thread that hardly depends on what else runs.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from gateway.bundled import default_models_dir, prepare
from semantic_layer import load_verifier
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.models.verifier import Pair, PairScorer

NUM_PAIRS = 5
WARM = 5


def question(number: int, mark: str = "") -> str:
    """Return a question of 15 tokens that nobody asked before."""
    return f"How do I reset the password of account {number}{mark} please?"


def pairs(number: int, mark: str = "") -> list[Pair]:
    """Return five pairs of one new question and five stored ones."""
    stored = (f"What must I do to get a new password for {number}{i}?" for i in range(NUM_PAIRS))
    return [(question(number, mark), text) for text in stored]


def line(name: str, call: Callable[[int], object], repeats: int) -> str:
    """Return what a call of successive numbers takes."""
    wall, own = [], []
    for number in range(WARM + repeats):
        began, began_own = time.perf_counter(), time.thread_time()
        call(number)
        wall.append(1e3 * (time.perf_counter() - began))
        own.append(1e3 * (time.thread_time() - began_own))
    p50, cpu = np.median(wall[WARM:]), np.median(own[WARM:])
    return f"{name:28} p50 {p50:6.2f} ms, least {min(wall[WARM:]):6.2f}, CPU {cpu:6.2f}"


def measure(encoder: BertEncoder, verifier: PairScorer, repeats: int) -> Sequence[str]:
    """Return a line for each case; the order matters, for texts that were read are kept."""
    return [
        line("embed one", lambda n: encoder.encode([question(n)]), repeats),
        line("five pairs, all texts new", lambda n: verifier.score(pairs(n)), repeats),
        line("five pairs, asked text new", lambda n: verifier.score(pairs(n, "a")), repeats),
        line("five pairs, none new", lambda n: verifier.score(pairs(n, "a")), repeats),
        line("one pair, asked text new", lambda n: verifier.score(pairs(n, "b")[:1]), repeats),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    base = prepare(default_models_dir(os.environ)).embedder_path
    print("\n".join(measure(BertEncoder(base), load_verifier("bundled", base), options.repeats)))
