"""Can a tenant tell by its TTFT what another tenant has asked? Both distributions, in one run.

usage: python -m tests.bench.bench_isolation [MODEL] [--prompt 96] [--repeats 25] [--threads 2]

Each repeat, in random order, a guesser asks a prompt that the victim has just asked, one that
nobody has, and one that it asked itself before. Printed: tokens computed, TTFT at three quantiles,
and how often it was faster than what nobody asked: one half tells nothing, 1 everything.
"""

import argparse
import os
import random
import statistics
import time
from pathlib import Path

from gateway.bundled import default_models_dir, prepare
from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.messages import Generate, Sampling
from tests.bench.bench_engine import random_prompt

NOBODYS, VICTIMS, OWN = "nobody's", "the victim's", "its own"


class Guesser:
    """An engine with two tenants, and what the guesser's requests took."""

    def __init__(self, folder: Path, num_threads: int, prompt_tokens: int) -> None:
        pool = 16 * prompt_tokens
        self._engine = Engine(EngineConfig(folder, kv_tokens=pool, num_threads=num_threads))
        self._prompt_tokens = prompt_tokens
        self._count = 0
        self.seconds: dict[str, list[float]] = {NOBODYS: [], VICTIMS: [], OWN: []}
        self.computed: dict[str, set[int]] = {name: set() for name in self.seconds}

    def try_all(self) -> None:
        for whose in random.sample(list(self.seconds), len(self.seconds)):
            self._count += 1
            vocab_size = self._engine.ready.vocab_size
            prompt = random_prompt(self._prompt_tokens, self._count, vocab_size)
            before = random_prompt(self._prompt_tokens, -self._count, vocab_size)
            self._ask(before if whose == NOBODYS else prompt, b"guesser" if whose == OWN else b"v")
            spent, computed = self._ask(prompt, b"guesser")
            self.seconds[whose].append(spent)
            self.computed[whose].add(computed)

    def _ask(self, prompt: list[int], salt: bytes) -> tuple[float, int]:
        before = self._num_computed()
        begin = time.perf_counter()
        sampling = Sampling(max_tokens=1, temperature=0.0)
        assert self._engine.add(Generate("r", prompt, sampling, salt)) is None
        while self._engine.has_work:
            self._engine.step()
        return time.perf_counter() - begin, self._num_computed() - before

    def _num_computed(self) -> int:
        return self._engine.stats("s").tokens_by_source["computed"]


def show(guesser: Guesser) -> None:
    plain = guesser.seconds[NOBODYS]
    print(f"{'prompt':>14}{'computed':>12}{'p10':>9}{'p50':>9}{'p90 ms':>9}{'faster':>9}")
    for whose, seconds in guesser.seconds.items():
        low, middle, high = (statistics.quantiles(seconds, n=10)[i] * 1e3 for i in (0, 4, 8))
        faster = statistics.fmean(a < b for a in seconds for b in plain)
        computed = ", ".join(map(str, sorted(guesser.computed[whose])))
        print(f"{whose:>14}{computed:>12}{low:9.1f}{middle:9.1f}{high:9.1f}{faster:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--prompt", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folder = options.model or prepare(default_models_dir(os.environ)).chat_path
    guesser = Guesser(folder, options.threads, options.prompt)
    for _ in range(options.repeats):
        guesser.try_all()
    show(guesser)


if __name__ == "__main__":
    main()
