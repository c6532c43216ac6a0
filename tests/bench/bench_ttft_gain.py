"""Measure what hits are worth and what looking for them costs, in one process and one run.

usage: python -m tests.bench.bench_ttft_gain [MODEL_FOLDER | --wide] [--prompt 2000] [--repeats 5]

Interleaved: each repeat times one new prompt at every hit share, and one with prefix caching off.
`gain` is the median TTFT without hits over that with them, `ideal` 1/(1-h). The cost at 0% hits is
the median ratio of engine time, cache on over cache off, of prompts served one after the other.

New tokens attend to the cached ones, which no cache saves. With x the time of attention over that
of everything else in a cold prefill, gain/ideal is (1+x)/(1+x(1+h)) at best: 90% at h = 0.9 asks
for x ≤ 0.14. By its operations SmolLM2-135M has x = 0.33 at 2,000 tokens; measured 2026-11-29,
beside other work: 89% 85% 79% 73%, so x = 0.7; cost at 0% hits -0.15%, hashing 64 to 111 ns.
``--wide`` takes two layers of Llama 3.2 1B's shape with random weights instead: x = 0.07.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from transformers import LlamaConfig

from gateway.bundled import default_models_dir, prepare
from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.hashing import block_hash
from prefix_layer.messages import Generate, Sampling
from prefix_layer.prefix_index import PrefixIndex
from tests.bench.bench_engine import random_prompt
from tests.prefix_layer.tiny import write_tiny

SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)
HASHED_TOKENS = 100_000
WIDE = {
    "vocab_size": 1024,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 2,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 4096,
    "initializer_range": 0.02,
}


def ttft_s(engine: Engine, name: str, prompt: list[int]) -> float:
    begin = time.perf_counter()
    failed = engine.add(Generate(name, prompt, Sampling(max_tokens=1, temperature=0.0)))
    assert failed is None, failed
    while engine.has_work:
        engine.step()
    return time.perf_counter() - begin


class Bench:
    """Two engines over one model, prefix caching on and off."""

    def __init__(self, folder: Path, threads: int, prompt_tokens: int) -> None:
        pool = {"kv_tokens": 8 * prompt_tokens, "num_threads": threads}
        self._on = Engine(EngineConfig(folder, **pool))
        self._off = Engine(EngineConfig(folder, prefix_caching=False, **pool))
        self._prompt_tokens = prompt_tokens
        self._count = 0

    def fresh(self, length: int) -> list[int]:
        self._count += 1
        return random_prompt(length, self._count, self._on.ready.vocab_size)

    def hit_s(self, share: float) -> float:
        """Time a prompt of which ``share`` has just been computed."""
        cached = self.fresh(round(self._prompt_tokens * share))
        if cached:
            ttft_s(self._on, f"warm-{self._count}", cached)
        prompt = cached + self.fresh(self._prompt_tokens - len(cached))
        return ttft_s(self._on, f"hit-{self._count}", prompt)

    def cost(self) -> float:
        """Time one new prompt with the cache on and off; return the ratio."""
        prompt = self.fresh(self._prompt_tokens)
        engines = [self._on, self._off] if self._count % 2 else [self._off, self._on]
        times = {engine: ttft_s(engine, f"cost-{self._count}", prompt) for engine in engines}
        return times[self._on] / times[self._off]


def hashing_ns() -> float:
    """Return nanoseconds per token to name the blocks of a long prompt."""
    index = PrefixIndex(16, "f" * 64, block_hash)
    prompt = random_prompt(HASHED_TOKENS, 0, 49_152)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        index.extend_hashes([], b"salt", prompt)
        times.append(time.perf_counter() - begin)
    return min(times) / HASHED_TOKENS * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--prompt", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--wide", action="store_true", help="two random layers of a 1B model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        folder = options.model or (
            write_tiny(Path(room), LlamaConfig, **WIDE)
            if options.wide
            else prepare(default_models_dir(os.environ)).chat_path
        )
        measure(folder, options)


def measure(folder: Path, options: argparse.Namespace) -> None:
    print(f"hashing {hashing_ns():.0f} ns per token")
    bench = Bench(folder, options.threads, options.prompt)
    bench.cost()
    times: dict[float, list[float]] = {share: [] for share in SHARES}
    costs: list[float] = []
    for _ in range(options.repeats):
        for share in SHARES:
            times[share].append(bench.hit_s(share))
        costs.append(bench.cost())
    cold = statistics.median(times[0.0])
    print(f"{options.prompt} tokens, {options.threads} threads, {options.repeats} repeats")
    print("hit share   TTFT ms    gain   ideal  of ideal")
    for share in SHARES:
        warm = statistics.median(times[share])
        gain, ideal = cold / warm, 1 / (1 - share)
        print(f"{share:9.0%}{warm * 1e3:10.0f}{gain:8.2f}{ideal:8.2f}{gain / ideal:10.0%}")
    spread = f"{min(costs) - 1:+.1%} to {max(costs) - 1:+.1%}"
    print(f"cost at 0% hits {statistics.median(costs) - 1:+.2%} ({spread})")


if __name__ == "__main__":
    main()
