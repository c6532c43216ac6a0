"""What eight-bit KV costs in answers: one scale for which numbers?

usage: python -m tests.bench.bench_kv_codec [MODEL_FOLDER]

Contexts are computed, their KV is rounded in place in each way, and questions go on from there.
Printed: the largest and mean difference of the next token's logits to exact KV, and how many of
the greedily decoded tokens stay the same.

Measured, SmolLM2-135M fp32, 3 contexts × 2 questions × 16 tokens: a scale per token and head, which
is what the codec has, 0.160 largest, 0.041 mean, 100% same tokens; per block and head 0.319, 0.057,
87.5%; keys per channel 0.112, 0.017, 100%, for which scales take 13% of the space instead of 6%.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer

from gateway.bundled import default_models_dir, prepare
from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.messages import Generate, Sampling, Tokens

BLOCK_SIZE = 16
DECODED = 16
CONTEXTS = [
    "The harbour town of Lindau lies on an island in Lake Constance. Its lighthouse was finished "
    "in 1856 and is thirty-three metres high. A stone lion looks over the water. "
    "In summer the ferries leave every hour for Bregenz, Konstanz and Friedrichshafen. " * 3,
    "def area(shape):\n    if shape.kind == 'circle':\n        return 3.14159 * shape.radius ** 2\n"
    "    if shape.kind == 'square':\n        return shape.side ** 2\n"
    "    raise ValueError(shape)\n\n" * 3,
    "北京是中华人民共和国的首都，人口超过两千万。城市中心是故宫，建于一四二〇年。"
    "春天多风，夏天炎热多雨，秋天是最好的季节。" * 3,
]
QUESTIONS = [
    "\n\nIn one sentence, this text is about",
    "\n\nQ: What comes next? A:",
]


def rounded(view: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Round to eight bits with one scale for all numbers along ``dims``."""
    scale = view.abs().amax(dim=dims, keepdim=True).clamp(min=1e-30) / 127
    return (view / scale).round() * scale


def per_token(views: list[Tensor]) -> list[Tensor]:
    return [rounded(view, (2,)) for view in views]


def per_block(views: list[Tensor]) -> list[Tensor]:
    return [rounded(view, (0, 2)) for view in views]


def keys_per_channel(views: list[Tensor]) -> list[Tensor]:
    return [rounded(view, (0,) if i % 2 == 0 else (2,)) for i, view in enumerate(views)]


WAYS: dict[str, Callable[[list[Tensor]], list[Tensor]]] = {
    "exact": lambda views: views,
    "a scale per token and head": per_token,
    "a scale per block and head": per_block,
    "keys per block and channel, values per token": keys_per_channel,
}


class Bench:
    """An engine whose cached KV can be tampered with."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.engine = Engine(EngineConfig(folder, device="cpu", kv_tokens=4096, num_threads=1))
        self.logits: list[Tensor] = []
        run = self.engine._runner.run

        def watched(chunks: Any) -> Tensor:
            self.logits.append(run(chunks))
            return self.logits[-1]

        self.engine._runner.run = watched  # type: ignore[method-assign]

    def answer(self, text: str, max_tokens: int) -> tuple[Tensor, list[int]]:
        """Return the logits behind the text (vocab_size,) and the tokens decoded from there."""
        prompt = self.tokenizer(text, add_special_tokens=False).input_ids
        sampling = Sampling(max_tokens=max_tokens, temperature=0.0)
        self.logits.clear()
        self.engine.add(Generate("r", prompt, sampling))
        tokens: list[int] = []
        while self.engine.has_work:
            for event in self.engine.step():
                assert isinstance(event, Tokens), event
                tokens += event.token_ids
        return self.logits[-max_tokens][-1].float(), tokens

    def round_cached(self, way: Callable[[list[Tensor]], list[Tensor]]) -> None:
        for block in self.engine._pool.index:
            held = len(block.token_ids)
            views = [view[:held] for view in self.engine._views(block.block_id)]
            for view, part in zip(views, way(views), strict=True):
                view.copy_(part)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path, nargs="?", help="default: the bundled model")
    options = parser.parse_args()
    bench = Bench(options.model or prepare(default_models_dir(os.environ)).chat_path)
    exact: dict[tuple[int, int], tuple[Tensor, list[int]]] = {}
    print(f"{'':46} largest   mean  same tokens")
    for name, way in WAYS.items():
        differences: list[Tensor] = []
        same = 0
        for c, context in enumerate(CONTEXTS):
            for q, question in enumerate(QUESTIONS):
                bench.engine.reset()
                bench.answer(context, 1)
                bench.round_cached(way)
                logits, tokens = bench.answer(context + question, DECODED)
                expected = exact.setdefault((c, q), (logits, tokens))
                differences.append((logits - expected[0]).abs())
                same += sum(a == b for a, b in zip(tokens, expected[1], strict=True))
        every = torch.stack(differences)
        share = same / (len(differences) * DECODED)
        print(f"{name:46} {every.max():7.3f} {every.mean():6.3f} {share:12.1%}")


if __name__ == "__main__":
    main()
