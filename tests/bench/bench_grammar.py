"""Time constrained against free decoding in one run: what masks cost, what forced tokens save.

usage: python -m tests.bench.bench_grammar [MODEL_FOLDER] [--tokens 48] [--repeats 5]

Prints medians and ratios to free decoding of as many tokens. ``masks only`` computes every token,
as an answer with logprobs does; ``record`` is a whole answer of a schema, whose fixed text needs no
steps. Source: SmolLM2 fp32, 2 cores, others at work: see LOG.md.
"""

import argparse
import json
import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

from gateway.backends.json_schema import strict_schema
from gateway.backends.plan import read_plan
from gateway.backends.tool_format import FORMATS
from gateway.bundled import default_models_dir, prepare
from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.grammar import Vocabulary, compile_grammar, load_vocabulary
from prefix_layer.messages import Generate, Grammar, Sampling

EOS = 2
BATCHES = (1, 8)
STRING = {"type": "string", "minLength": 2000}
RECORD = {
    "type": "object",
    "properties": {
        "given_name": {"type": "string", "maxLength": 12},
        "family_name": {"type": "string", "maxLength": 12},
        "is_subscribed": {"type": "boolean"},
        "plan": {"enum": ["free", "team", "enterprise"]},
        "number_of_seats": {"type": "integer", "minimum": 1, "maximum": 99},
    },
}
RECORD["required"] = list(RECORD["properties"])
TOOL = {"type": "function", "function": {"name": "save", "parameters": RECORD}}


def grammar_of(schema: object) -> Grammar:
    return Grammar("json_schema", strict_schema(schema, "schema"))


class Timer:
    """Runs batches of one prompt's length and gives seconds per sequence and generated token."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._count = 0

    def run(self, size: int, sampling: Sampling) -> tuple[float, int]:
        """Return seconds from the first to the last token, and how many there were a sequence."""
        num_tokens = 0
        begin = 0.0
        for _ in range(size):
            self._count += 1
            prompt = random.Random(self._count).choices(range(10, 49_000), k=64)
            failed = self._engine.add(Generate(f"r{self._count}", prompt, sampling))
            assert failed is None, failed
        while self._engine.has_work:
            events = self._engine.step()
            if events and not begin:
                begin = time.perf_counter()
                continue
            num_tokens += sum(len(event.token_ids) for event in events)  # type: ignore[union-attr]
        return time.perf_counter() - begin, num_tokens // size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    folder = options.model or prepare(default_models_dir(os.environ)).chat_path
    timer = Timer(Engine(EngineConfig(folder, dtype="float32", device="cpu")))
    vocabulary = load_vocabulary(folder, timer._engine.ready.vocab_size)
    plan = read_plan({"tools": [TOOL]}, FORMATS["hermes"], {})
    assert plan.grammar is not None
    print_compile_times(vocabulary, plan.grammar)

    def sampling(grammar: Grammar | None, **more: Any) -> Sampling:
        stops = [EOS] if grammar else []
        return Sampling(options.tokens, 0.0, stop_token_ids=stops, grammar=grammar, **more)

    rows = {
        "free": sampling(None),
        "free, logprobs": sampling(None, num_logprobs=0),
        "masks only": sampling(grammar_of(STRING), num_logprobs=0),
        "text beside tools": sampling(plan.grammar, logit_bias={EOS: -100.0}),
        "record": sampling(grammar_of(RECORD)),
    }
    for size in BATCHES:
        costs: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(options.repeats):
            for name, one in rows.items():
                seconds, count = timer.run(size, one)
                costs[name].append(seconds / max(count, 1))
        medians = {name: statistics.median(values) for name, values in costs.items()}
        for name, median in medians.items():
            ratio = median / medians["free"]
            print(f"batch {size}  {name:18} {1e3 * median:8.1f} ms/token  {ratio:5.2f}× free")


def print_compile_times(vocabulary: Vocabulary, tools: Grammar) -> None:
    for name, grammar in (("record", grammar_of(RECORD)), ("tools", tools)):
        begin = time.perf_counter()
        compile_grammar(vocabulary, grammar)
        size = len(json.dumps(grammar.text))
        print(f"compile {name} ({size} characters): {1e3 * (time.perf_counter() - begin):.1f} ms")


if __name__ == "__main__":
    main()
