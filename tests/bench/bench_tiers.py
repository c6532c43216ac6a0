"""Is an engine with KV tiers ever slower than one without? The same requests on both, in one run.

usage: python -m tests.bench.bench_tiers [MODEL_FOLDER] [--prompt 264] [--requests 24] [--threads 2]

Every pattern has its own share of requests that repeat a prompt which has left the pool. Engines
take turns at each request. Printed: total time as a ratio to the engine without tiers (below 1 is
faster), separately for new and repeated prompts, and where the tokens came from.

Measured, SmolLM2-135M fp32, prompts of 136 tokens, 12 requests each, a machine with other work:
repeated prompts 0.18 to 0.23 of the time in all modes; total 0.58 (host) and 0.63 (disk) at 50%,
0.49 and 0.42 at 90%; 1.03 to 1.10 at 0%, too noisy a machine to tell from 1. The parts: keeping a
block of 16 tokens takes 0.21 ms (host) and 0.58 ms more of the disk's thread, loading it 0.35 and
0.13 ms more, computing it about 20 ms.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.bundled import default_models_dir, prepare
from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.messages import Generate, Sampling, Tokens

MUCH = 4 << 30
BLOCK_SIZE = 16
IN_POOL = 3
DISTANCES = range(IN_POOL + 1, IN_POOL + 6)
MODES: dict[str, dict[str, Any]] = {
    "off": {},
    "host": {"host_kv_bytes": MUCH},
    "disk": {"disk_kv_bytes": MUCH},
    "host+disk": {"host_kv_bytes": MUCH, "disk_kv_bytes": MUCH},
    "host int8": {"host_kv_bytes": MUCH, "kv_codec": "int8"},
    "disk int8": {"disk_kv_bytes": MUCH, "kv_codec": "int8"},
}


@dataclass
class Lane:
    """One engine and what its requests took, by whether the prompt was new."""

    engine: Engine
    seconds: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})

    def run(self, name: str, prompt: list[int], *, is_new: bool) -> None:
        begin = time.perf_counter()
        sampling = Sampling(max_tokens=4, temperature=0.0)
        assert self.engine.add(Generate(name, prompt, sampling)) is None
        while self.engine.has_work:
            for event in self.engine.step():
                assert isinstance(event, Tokens), event
        self.seconds[is_new].append(time.perf_counter() - begin)
        self.engine.rest()

    def total_s(self) -> float:
        return sum(self.seconds[True]) + sum(self.seconds[False])

    def median_s(self, *, is_new: bool) -> float:
        return statistics.median(self.seconds[is_new]) if self.seconds[is_new] else float("nan")


def requests(
    count: int, share: float, length: int, seed: int, warm: int
) -> list[tuple[list[int], bool]]:
    """Draw prompts; a repeated one was last used a few more prompts ago than the pool holds."""
    chance = random.Random(f"{seed}/{share}")
    drawn: list[tuple[list[int], bool]] = []
    for i in range(count + warm):
        distance = chance.choice(DISTANCES)
        repeats = i >= warm and chance.random() < share
        new = chance.choices(range(100, 40_000), k=length)
        drawn.append((drawn[i - distance][0], False) if repeats else (new, True))
    return drawn


def run_pattern(lanes: dict[str, Lane], share: float, options: argparse.Namespace) -> None:
    drawn = requests(options.requests, share, options.prompt, options.seed, options.warm)
    before = {name: lane.engine.stats("").tokens_by_source for name, lane in lanes.items()}
    for i, (prompt, is_new) in enumerate(drawn):
        if i == options.warm:
            for lane in lanes.values():
                lane.seconds = {True: [], False: []}
        order = list(lanes)
        for name in order[i % len(order) :] + order[: i % len(order)]:
            lanes[name].run(f"{share}/{i}", prompt, is_new=is_new)
    off = lanes["off"]
    print(f"\n{share:.0%} repeated    total ratio   new: ms  ratio   repeated: ms  ratio   tokens")
    for name, lane in lanes.items():
        stats = lane.engine.stats("")
        new_s, old_s = lane.median_s(is_new=True), lane.median_s(is_new=False)
        tokens = {k: v - before[name].get(k, 0) for k, v in stats.tokens_by_source.items()}
        print(
            f"  {name:12} {lane.total_s() / off.total_s():10.3f}"
            f" {new_s * 1e3:12.1f} {new_s / off.median_s(is_new=True):6.3f}"
            f" {old_s * 1e3:13.1f} {old_s / off.median_s(is_new=False):6.3f}   {tokens}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--prompt", type=int, default=264)
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm", type=int, default=max(DISTANCES), help="requests not timed")
    parser.add_argument("--modes", nargs="*", choices=list(MODES), default=list(MODES))
    parser.add_argument("--shares", nargs="*", type=float, default=[0.0, 0.25, 0.5, 0.9])
    options = parser.parse_args()
    model = options.model or prepare(default_models_dir(os.environ)).chat_path
    blocks = IN_POOL * -(-(options.prompt + 4) // BLOCK_SIZE)
    with tempfile.TemporaryDirectory() as folder:
        lanes = {
            name: Lane(
                Engine(
                    EngineConfig(
                        model,
                        device="cpu",
                        block_size=BLOCK_SIZE,
                        num_threads=options.threads,
                        kv_tokens=blocks * BLOCK_SIZE,
                        kv_dir=Path(folder) / name.replace(" ", "-"),
                        **MODES[name],
                    )
                )
            )
            for name in {"off": None, **dict.fromkeys(options.modes)}
        }
        for share in options.shares:
            run_pattern(lanes, share, options)
        for lane in lanes.values():
            lane.engine.close()


if __name__ == "__main__":
    main()
