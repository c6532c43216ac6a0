"""Weights rounded to 8 bits: close to the model, the same alone and batched."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers as tf

from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.errors import ModelLoadError
from tests.prefix_layer.driving import (
    drive,
    greedy,
    load_reference,
    make_engine,
    next_logits,
    reference_logits,
)
from tests.prefix_layer.kernels import needed_kernel

WIDE = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 16, "initializer_range": 0.1}
PROMPT = list(range(40, 90))


@pytest.fixture(scope="module")
def wide_llama(make_tiny: Callable[..., Path]) -> Path:
    return make_tiny(tf.LlamaConfig, **WIDE)


def test_logits_are_near_the_models_when_weights_are_rounded(wide_llama: Path) -> None:
    """Rounding moves the logits of a random model by a few per cent, and moves them at all."""
    expected = reference_logits(load_reference(wide_llama), PROMPT)
    actual = next_logits(make_engine(wide_llama, weights="int8"), PROMPT)
    difference = float((actual - expected).norm() / expected.norm())
    assert 1e-5 < difference < 0.05


def test_text_is_the_same_when_rounded_weights_run_batched(wide_llama: Path) -> None:
    """A row does not depend on the rows beside it; a warm prefix changes no logit by 1e-4."""
    engine = make_engine(wide_llama, weights="int8")
    prompts = {str(n): PROMPT[:n] for n in range(5, 50, 5)}
    alone = {
        name: drive(engine, [greedy(name, prompt)])[name].token_ids
        for name, prompt in prompts.items()
    }
    engine.reset()
    together = drive(engine, [greedy(name, prompt) for name, prompt in prompts.items()])
    assert {name: answer.token_ids for name, answer in together.items()} == alone
    engine.reset()
    cold = next_logits(engine, PROMPT)
    torch.testing.assert_close(next_logits(engine, PROMPT), cold, atol=1e-4, rtol=1e-4)


def test_every_product_is_narrow_when_weights_are_rounded(wide_llama: Path) -> None:
    """The kernel takes all of them."""
    needed_kernel()
    module = make_engine(wide_llama, weights="int8")._model.module
    assert module.lm_head._narrow.bits == 8
    (stack,) = module.model.layers
    assert {product.narrow.bits for layer in stack.layers for product in layer.products} == {8}


def test_fingerprint_differs_when_weights_are_rounded(wide_llama: Path) -> None:
    """No cached KV or answer of the whole weights is taken for one of the rounded."""
    whole, rounded = make_engine(wide_llama), make_engine(wide_llama, weights="int8")
    assert whole.ready.model_fingerprint != rounded.ready.model_fingerprint


def test_load_is_refused_when_int8_meets_another_dtype(wide_llama: Path) -> None:
    """Half precision can't hold the rounded weights."""
    with pytest.raises(ModelLoadError, match="int8 needs dtype float32"):
        Engine(EngineConfig(wide_llama, dtype="bfloat16", device="cpu", weights="int8"))
