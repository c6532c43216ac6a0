"""Time the engine against plain transformers in one run: TTFT cold and warm, decode, twins.

usage: python -m tests.bench.bench_engine [MODEL_FOLDER] [--prompt 920] [--shared 896] [--threads 2]

Prints medians and ratios (transformers time over engine time: above 1 the engine is faster).
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from gateway.bundled import default_models_dir, prepare
from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.messages import Generate, Sampling

REPEATS = 5
DECODE_TOKENS = 32


class Clock:
    """Measures an engine's first token and decode rate."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._count = 0

    def run(self, prompts: list[list[int]], max_tokens: int) -> tuple[float, float]:
        """Return seconds to the last sequence's first token, and to the end."""
        names = [f"{self._count}-{i}" for i in range(len(prompts))]
        self._count += 1
        waiting = set(names)
        begin = last_first = time.perf_counter()
        for name, prompt in zip(names, prompts, strict=True):
            failed = self._engine.add(
                Generate(name, prompt, Sampling(max_tokens=max_tokens, temperature=0.0))
            )
            assert failed is None, failed
        while self._engine.has_work:
            for event in self._engine.step():
                if event.request_id in waiting:
                    waiting.discard(event.request_id)
                    last_first = time.perf_counter()
        return last_first - begin, time.perf_counter() - begin


def median(measure: Callable[[int], float], repeats: int = REPEATS) -> float:
    return statistics.median(measure(i) for i in range(repeats))


def random_prompt(length: int, seed: int, vocab_size: int) -> list[int]:
    return random.Random(seed).choices(range(10, vocab_size), k=length)


@torch.inference_mode()
def time_transformers(model: Any, prompt: list[int], max_tokens: int) -> float:
    """Return the seconds that a greedy answer takes; reading its ids waits for a GPU too."""
    ids = torch.tensor([prompt], device=model.device)
    begin = time.perf_counter()
    model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        min_new_tokens=max_tokens,
        max_new_tokens=max_tokens,
        do_sample=False,
        pad_token_id=0,
    ).tolist()
    return time.perf_counter() - begin


def show(name: str, engine_s: float, transformers_s: float) -> None:
    ratio = transformers_s / engine_s
    print(f"{name:34} {engine_s * 1e3:9.1f} ms {transformers_s * 1e3:9.1f} ms {ratio:7.2f}x")


def compare(
    folder: Path, dtype: str, *, device: str, threads: int, prompt: int, shared: int
) -> None:
    """Print the table for one model folder; ``prompt`` and ``shared`` are numbers of tokens."""
    begin = time.perf_counter()
    engine = Engine(EngineConfig(folder, dtype=dtype, device=device, num_threads=threads))
    load_s = time.perf_counter() - begin
    clock, vocab_size = Clock(engine), engine.ready.vocab_size
    own_dtype = getattr(torch, engine.ready.dtype)
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=own_dtype).eval().to(device)
    prefix = random_prompt(shared, 10_000, vocab_size)

    def fresh(seed: int) -> list[int]:
        return random_prompt(prompt, seed, vocab_size)

    def sharing(seed: int) -> list[int]:
        return prefix + random_prompt(prompt - shared, seed, vocab_size)

    def decode_s(whole: Callable[[int], float], first: float) -> float:
        return (median(whole, 3) - first) / (DECODE_TOKENS - 1)

    print(f"{engine.ready.dtype} on {device}, {threads} threads, engine loaded in {load_s:.2f} s")
    print(f"{'':34} {'engine':>12} {'transformers':>12}")
    cold = median(lambda i: clock.run([fresh(i)], 1)[0])
    plain_cold = median(lambda i: time_transformers(plain, fresh(i), 1), 3)
    show(f"TTFT cold, {prompt} tokens", cold, plain_cold)
    clock.run([sharing(0)], 1)
    warm = median(lambda i: clock.run([sharing(1 + i)], 1)[0])
    show(f"TTFT warm, {shared} of them cached", warm, plain_cold)
    long_s = decode_s(lambda i: clock.run([sharing(50 + i)], DECODE_TOKENS)[1], warm)
    plain_long_s = decode_s(lambda _: time_transformers(plain, fresh(0), DECODE_TOKENS), plain_cold)
    show(f"decode step at {prompt}", long_s, plain_long_s)
    short = random_prompt(8, 1, vocab_size)
    first = median(lambda _: clock.run([short], 1)[0])
    plain_first = median(lambda _: time_transformers(plain, short, 1))
    show(
        "decode step at 8",
        decode_s(lambda _: clock.run([short], DECODE_TOKENS)[1], first),
        decode_s(lambda _: time_transformers(plain, short, DECODE_TOKENS), plain_first),
    )
    engine.reset()
    last = clock.run([sharing(100 + i) for i in range(4)], 1)[0]
    show("last TTFT, 4 with one new prefix", last, 4 * plain_cold)
    many = [random_prompt(24, 200 + i, vocab_size) for i in range(8)]
    first_s, end_s = clock.run(many, DECODE_TOKENS)
    rate = 8 * (DECODE_TOKENS - 1) / (end_s - first_s)
    print(f"{'8 at once':34} {rate:9.1f} tok/s; alone {1 / long_s:.1f} tok/s at {prompt}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", help="default: the bundled model")
    parser.add_argument("--prompt", type=int, default=920)
    parser.add_argument("--shared", type=int, default=896)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    compare(
        options.model or prepare(default_models_dir(os.environ)).chat_path,
        options.dtype,
        device="cpu",
        threads=options.threads,
        prompt=options.prompt,
        shared=options.shared,
    )


if __name__ == "__main__":
    main()
