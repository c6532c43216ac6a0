"""Proves at load that paging changes nothing: compares with the model's own attention."""

import time
from typing import Any

import torch
from torch import Tensor

from prefix_layer.attention import ATTENTION_NAME
from prefix_layer.block import Block
from prefix_layer.errors import UnsupportedModel
from prefix_layer.messages import Generate, Sampling
from prefix_layer.model import LoadedModel
from prefix_layer.runner import Runner
from prefix_layer.scheduler import Chunk
from prefix_layer.sequence import Sequence

_NUM_TOKENS = 24
_TOLERANCE = {torch.float32: 1e-3}
_HALF_TOLERANCE = 0.1


def probe_tokens(model: LoadedModel, block_size: int, num_blocks: int) -> list[int]:
    """Choose tokens for the comparison: a few, spread over the vocabulary."""
    count = max(min(_NUM_TOKENS, block_size * num_blocks, model.context_length), 2)
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, model.vocab_size, (count,), generator=generator).tolist()


@torch.inference_mode()
def reference_logits(model: LoadedModel, token_ids: list[int]) -> Tensor:
    """Compute the last token's logits (vocab_size,) with transformers' own attention."""
    module: Any = model.module
    module.set_attn_implementation("eager")
    try:
        ids = torch.tensor([token_ids], device=model.device)
        logits: Tensor = module(input_ids=ids, use_cache=False).logits[0, -1]
    finally:
        module.set_attn_implementation(ATTENTION_NAME)
    return logits.float()


def paged_logits(runner: Runner, token_ids: list[int], block_size: int) -> Tensor:
    """Compute the same through the first blocks of the pool, in steps of many and of few rows."""
    sequence = _probe(token_ids, block_size)
    logits = torch.empty(0)
    for num_tokens in _steps(len(token_ids)):
        logits = runner.run([Chunk(sequence, num_tokens)])[-1]
        sequence.num_computed_tokens += num_tokens
    return logits.float()


def prefill_s(runner: Runner, num_tokens: int, block_size: int) -> float:
    """Return the seconds that one step of this many tokens takes, the second time it is run."""
    seconds = 0.0
    for _ in range(2):
        sequence = _probe([0] * num_tokens, block_size)
        begin = time.perf_counter()
        runner.run([Chunk(sequence, num_tokens)])
        seconds = time.perf_counter() - begin
    return seconds


def _probe(token_ids: list[int], block_size: int) -> Sequence:
    """Return a sequence in the first blocks of the pool."""
    sequence = Sequence(Generate("", token_ids, Sampling(max_tokens=1)), len(token_ids) + 1)
    sequence.block_table = [Block(i) for i in range(-(-len(token_ids) // block_size))]
    return sequence


def _steps(num_tokens: int) -> list[int]:
    """Divide tokens into half of them, then all but a few, a few, and one."""
    half = num_tokens // 2
    rest = num_tokens - half
    few = min(3, rest - 1)
    return [count for count in (half, rest - few - 1, few, 1) if count]


def agree(model: LoadedModel, expected: Tensor, actual: Tensor) -> bool:
    """Say whether logits differ by no more than rounding."""
    return relative_difference(expected, actual) <= _TOLERANCE.get(model.dtype, _HALF_TOLERANCE)


def relative_difference(expected: Tensor, actual: Tensor) -> float:
    """Return the length of the difference over the length of the expected vector."""
    return float((expected - actual).norm() / expected.norm().clamp(min=1e-6))


def check_agreement(model: LoadedModel, expected: Tensor, actual: Tensor) -> None:
    """Refuse a model that paging changes.

    Raises:
        UnsupportedModel: the logits differ by more than rounding.
    """
    if not agree(model, expected, actual):
        difference = relative_difference(expected, actual)
        raise UnsupportedModel(
            f"{model.config.model_type} computes differently under paged attention"
            f" (logits differ by {difference:.2%})"
        )
