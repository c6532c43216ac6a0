"""Measure what an eviction policy costs: time per block used, by size of the pool.

usage: python -m tests.bench.bench_eviction [--uses N]

Requests of 16 blocks: a third come back to one of the last 2·blocks/16 prompts. `flat` is the cost
at the largest pool over the cost at the smallest. The time in which an empty pool fills is left
out.
"""

import argparse
import random
import time

from prefix_layer.block import Block
from prefix_layer.eviction import POLICIES, EvictionPolicy, make_policy
from prefix_layer.trace.file import Trace
from prefix_layer.trace.replay import replay

SIZES = (1_000, 10_000, 100_000)
PROMPT_BLOCKS = 16


def make_trace(num_blocks: int, num_uses: int) -> Trace:
    rng = random.Random(0)
    requests: list[list[int]] = []
    for i in range((num_uses + 2 * num_blocks) // PROMPT_BLOCKS):
        recent = min(i, 2 * num_blocks // PROMPT_BLOCKS)
        if recent and rng.random() < 1 / 3:
            requests.append(requests[i - 1 - rng.randrange(recent)])
        else:
            requests.append(list(range(i * PROMPT_BLOCKS, (i + 1) * PROMPT_BLOCKS)))
    return Trace("bench", requests)


class Timed:
    """A policy whose calls are timed from the first eviction on."""

    def __init__(self, policy: EvictionPolicy) -> None:
        self._policy = policy
        self._is_full = False
        self.total_s = 0.0
        self.num_uses = 0

    def insert(self, block: Block) -> None:
        self._call("insert", block)
        self.num_uses += self._is_full

    def hit(self, block: Block) -> None:
        self._call("hit", block)
        self.num_uses += self._is_full

    def release(self, block: Block) -> None:
        self._call("release", block)

    def remove(self, block: Block) -> None:
        self._call("remove", block)

    def evict(self) -> Block:
        self._is_full = True
        victim = self._call("evict")
        assert victim is not None
        return victim

    def _call(self, name: str, *blocks: Block) -> Block | None:
        start = time.perf_counter()
        result = getattr(self._policy, name)(*blocks)
        if self._is_full:
            self.total_s += time.perf_counter() - start
        return result


def measure(name: str, num_blocks: int, num_uses: int) -> float:
    """Return microseconds of policy per block used."""
    timed = Timed(make_policy(name, num_blocks))
    replay(make_trace(num_blocks, num_uses), num_blocks, timed)
    return timed.total_s / timed.num_uses * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uses", type=int, default=200_000)
    options = parser.parse_args()
    print("us per block used   " + "".join(f"{size:>11,}" for size in SIZES) + "     flat")
    for name in POLICIES:
        costs = [measure(name, size, options.uses) for size in SIZES]
        line = "".join(f"{cost:11.2f}" for cost in costs)
        print(f"{name:20}{line}{costs[-1] / costs[0]:9.2f}", flush=True)


if __name__ == "__main__":
    main()
