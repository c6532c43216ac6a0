"""On CUDA: the engine computes what transformers computes, and how fast both are, in one run.

usage: python -m tests.bench.bench_gpu [MODEL_FOLDER] [--device cuda|cpu] [--dtype D …] [--quick]

Parity: tiny random models of every architecture the tests know, cold, warm and batched, in float32.
Then the table of `bench_engine`, once per dtype. Without CUDA nothing runs and one line says so;
``--device cpu`` goes through the whole flow without any.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from gateway.bundled import default_models_dir, prepare
from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from tests.bench.bench_engine import compare, random_prompt
from tests.prefix_layer.driving import drive, greedy, next_logits
from tests.prefix_layer.test_architectures import MAKES
from tests.prefix_layer.tiny import write_tiny

QUICK_MAKES = 2
NUM_TOKENS = 8
MARGIN = 1e-2
TOLERANCE = 1e-3


@torch.inference_mode()
def plain_logits(model: Any, token_ids: list[int]) -> torch.Tensor:
    """Return transformers' logits (vocab_size,) behind a prompt."""
    ids = torch.tensor([token_ids], device=model.device)
    logits: torch.Tensor = model(input_ids=ids, use_cache=False).logits[0, -1].float().cpu()
    return logits


def disagreement(model: Any, prompt: list[int], answer: list[int]) -> str | None:
    """Name the first token of a greedy answer that the model would clearly not choose."""
    for i, token_id in enumerate(answer):
        logits = plain_logits(model, prompt + answer[:i])
        if float(logits.max() - logits[token_id]) > MARGIN:
            return f"token {i} is {token_id}, not {int(logits.argmax())}"
    return None


def find_fault(folder: Path, device: str) -> str | None:
    """Compare one model's engine with transformers; None when they agree."""
    engine = Engine(
        EngineConfig(folder, dtype="float32", device=device, block_size=4, kv_tokens=1024)
    )
    plain = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    plain = plain.eval().to(device)
    prompts = [random_prompt(length, length, 300) for length in (41, 17, 30)]
    for state in ("cold", "warm"):
        for prompt in prompts:
            expected = plain_logits(plain, prompt)
            difference = float((next_logits(engine, prompt).cpu() - expected).abs().max())
            if difference > TOLERANCE * max(1.0, float(expected.abs().max())):
                return f"{state} logits differ by {difference:.2g}"
        commands = [greedy(str(i), p, NUM_TOKENS) for i, p in enumerate(prompts)]
        for name, answer in drive(engine, commands).items():
            fault = disagreement(plain, prompts[int(name)], answer.token_ids)
            if fault is not None:
                return f"{state}, batched: {fault}"
    return None


def check_parity(device: str, *, quick: bool) -> bool:
    """Print each architecture's verdict; return whether all agree."""
    all_agree = True
    for make, (config_class, settings) in list(MAKES.items())[: QUICK_MAKES if quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            fault = find_fault(write_tiny(Path(folder), config_class, **settings), device)
        print(f"parity {make:20} {fault or 'same'}")
        all_agree = all_agree and fault is None
    return all_agree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", help="default: the bundled model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--quick", action="store_true", help="two architectures, short prompts")
    options = parser.parse_args()
    if options.device != "cpu" and not torch.cuda.is_available():
        print("no CUDA device here: nothing was measured (--device cpu tries the flow)")
        return 0
    all_agree = check_parity(options.device, quick=options.quick)
    folder = options.model or prepare(default_models_dir(os.environ)).chat_path
    for dtype in options.dtype[: 1 if options.quick else None]:
        compare(
            folder,
            dtype,
            device=options.device,
            threads=torch.get_num_threads(),
            prompt=120 if options.quick else 920,
            shared=96 if options.quick else 896,
        )
    return 0 if all_agree else 1


if __name__ == "__main__":
    sys.exit(main())
