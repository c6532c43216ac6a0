"""Puts faster parts in a model's place, each only where it computes the same."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from prefix_layer.kv_cache import PagedKVCache
from prefix_layer.layer_stack import stack_layers
from prefix_layer.lean import find_layers
from prefix_layer.model import LoadedModel
from prefix_layer.narrow import NarrowKernel
from prefix_layer.prepack import can_prepack, prepack
from prefix_layer.runner import Runner
from prefix_layer.self_check import (
    agree,
    check_agreement,
    paged_logits,
    probe_tokens,
    reference_logits,
)


def prove_and_speed_up(
    model: LoadedModel, kv: PagedKVCache, runner: Runner, block_size: int, num_blocks: int
) -> None:
    """Make the model faster, and compare what it computes paged with its own attention before.

    Raises:
        UnsupportedModel: the logits differ by more than rounding.
    """
    tokens = probe_tokens(model, block_size, num_blocks)
    expected = reference_logits(model, tokens)
    if model.device.type == "cpu":
        if kv.kernel is not None and can_prepack():
            compute = partial(paged_logits, runner, tokens, block_size)
            _make_lean(model, kv, kv.kernel, compute, expected)
        prepack(model.module, kv.kernel)
    check_agreement(model, expected, paged_logits(runner, tokens, block_size))


def _make_lean(
    model: LoadedModel,
    kv: PagedKVCache,
    kernel: NarrowKernel,
    compute: Callable[[], Tensor],
    expected: Tensor,
) -> None:
    """Put lean layers in the model's place unless they compute anything else."""
    found = find_layers(model.module, kv)
    if found is None:
        return
    parent, name = found
    own = getattr(parent, name)
    setattr(parent, name, stack_layers(own, kv, kernel))
    if not agree(model, expected, compute()):
        setattr(parent, name, own)
