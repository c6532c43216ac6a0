"""Lean layers are the layers they stand for: same logits, same text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf
from transformers import AutoModelForCausalLM

from prefix_layer import engine_parts
from prefix_layer import lean as lean_module
from prefix_layer.kv_cache import PagedKVCache
from prefix_layer.layer_stack import LayerStack
from tests.prefix_layer.driving import (
    assert_same_text,
    drive,
    greedy,
    load_reference,
    make_engine,
    next_logits,
    reference_greedy,
    reference_logits,
)
from tests.prefix_layer.kernels import needed_kernel

WIDE = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 16}
MAKES: dict[str, tuple[type, dict[str, Any]]] = {
    "llama": (tf.LlamaConfig, {}),
    "llama-bias": (tf.LlamaConfig, {"attention_bias": True}),
    "mistral": (tf.MistralConfig, {"sliding_window": None}),
    "qwen2": (tf.Qwen2Config, {}),
}


@pytest.fixture(params=MAKES)
def folder(request: pytest.FixtureRequest, make_tiny: Callable[..., Path]) -> Path:
    """A model whose weights have 16 bits each, as most that are published."""
    needed_kernel()
    config_class, settings = MAKES[request.param]
    path = make_tiny(config_class, **(WIDE | settings))
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16)
    model.float().save_pretrained(path)
    return path


def prompt_of(length: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, 300, (length,), generator=generator).tolist()


def is_lean(engine: Any) -> bool:
    return isinstance(engine._model.module.model.layers[0], LayerStack)


def test_logits_equal_transformers_when_layers_are_lean(folder: Path) -> None:
    """Prompts in chunks of many rows and of few, cold and warm."""
    reference, engine = load_reference(folder), make_engine(folder, max_batch_tokens=16)
    assert is_lean(engine)
    prompt = prompt_of(45, 1)
    for length in (45, 45, 44, 30, 17, 2):
        expected = reference_logits(reference, prompt[:length])
        difference = (next_logits(engine, prompt[:length]) - expected).abs().max()
        assert difference < 1e-4 * max(1, expected.abs().max())


def test_text_equals_transformers_when_rows_are_mixed(folder: Path) -> None:
    """Prefill beside decode, more rows than the kernel takes, and fewer."""
    reference, engine = load_reference(folder), make_engine(folder, max_batch_tokens=24)
    shared = prompt_of(9, 2)
    prompts = [shared + prompt_of(n, n) for n in (1, 3, 5, 8, 14, 30, 2, 4, 6, 7)]
    for _ in range(2):
        answers = drive(engine, [greedy(str(i), p) for i, p in enumerate(prompts)])
        for i, prompt in enumerate(prompts):
            expected = reference_greedy(reference, prompt)
            assert_same_text(reference, prompt, expected, answers[str(i)].token_ids)


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_step_is_the_same_to_the_bit_when_layers_run_in_one_call(
    folder: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """One call for all layers or one loop at a time, alone, for a few sequences and for many."""
    engine = make_engine(folder, precision=precision, weights="int8")
    prompts = [prompt_of(n, n) for n in range(2, 15)]

    def answers() -> dict[str, Any]:
        asked = [greedy(str(i), p, num_logprobs=5) for i, p in enumerate(prompts)]
        found = {}
        for group in (asked[:1], asked[1:4], asked[4:]):
            engine.reset()
            found |= drive(engine, group)
        return found

    in_one = answers()
    monkeypatch.setattr(PagedKVCache, "rows_alone", lambda *_: None)
    assert answers() == in_one


def test_layers_stay_when_lean_ones_compute_anything_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in whose logits differ is not used; the model is served as it is."""
    monkeypatch.setattr(lean_module, "_norm", lambda m: lean_module.Norm(m.weight * 1.1, 1e-6))
    engine = make_engine(folder)
    assert not is_lean(engine)
    reference, prompt = load_reference(folder), prompt_of(20, 4)
    torch.testing.assert_close(
        next_logits(engine, prompt), reference_logits(reference, prompt), rtol=1e-4, atol=1e-4
    )


def test_text_is_the_same_when_there_is_no_compiler(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the kernel everything runs on torch's operators."""
    monkeypatch.setattr(engine_parts, "load_kernel", lambda *_: None)
    engine = make_engine(folder)
    assert not is_lean(engine)
    reference, prompt = load_reference(folder), prompt_of(20, 3)
    expected = reference_greedy(reference, prompt)
    answer = drive(engine, [greedy("a", prompt)])["a"]
    assert_same_text(reference, prompt, expected, answer.token_ids)


def test_layers_stay_when_they_slide_a_window(make_tiny: Callable[..., Path]) -> None:
    """Layers that are not of the known form are left as transformers made them."""
    engine = make_engine(make_tiny(tf.MistralConfig, **WIDE, sliding_window=7))
    assert not is_lean(engine)


@pytest.mark.parametrize("max_batch_tokens", [64, 10, 1])
def test_prompt_logprobs_are_the_models_when_layers_are_lean(
    folder: Path, max_batch_tokens: int
) -> None:
    """The last layer leaves no row out whose logits somebody wants, also beside others."""
    reference = load_reference(folder)
    engine = make_engine(folder, max_batch_tokens=max_batch_tokens)
    prompt = prompt_of(30, 5)
    assert engine.add(greedy("asks", prompt, 1, num_prompt_logprobs=1)) is None
    assert engine.add(greedy("other", prompt_of(12, 6), 4)) is None
    found: Any = None
    while engine.has_work:
        for event in engine.step():
            if event.request_id == "asks":
                found = event
    with torch.inference_mode():
        logits = reference(input_ids=torch.tensor([prompt])).logits[0]
    expected = torch.log_softmax(logits, -1)
    for at, entry in enumerate(found.prompt_logprobs):
        assert entry.logprob == pytest.approx(float(expected[at, prompt[at + 1]]), abs=1e-3)
