"""Drives an engine step by step in tests, with its invariants checked after every step."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from prefix_layer.messages import Failed, Generate, Sampling, TokenLogprob, Tokens

MARGIN = 1e-2


@dataclass(slots=True)
class Answer:
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: str | None = None
    num_cached_tokens: int = 0
    failed: Failed | None = None


def tokens(count: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(3, 320), k=count)


def make_engine(model_path: Path, **settings: Any) -> Engine:
    small = {"block_size": 4, "kv_tokens": 1024, "max_batch_tokens": 64, "num_threads": 1}
    return Engine(EngineConfig(model_path, dtype="float32", device="cpu", **(small | settings)))


def greedy(
    request_id: str, prompt: Sequence[int], max_tokens: int = 8, **sampling: Any
) -> Generate:
    settings = {"max_tokens": max_tokens, "temperature": 0.0} | sampling
    salt = settings.pop("salt", b"")
    return Generate(request_id, list(prompt), Sampling(**settings), salt)


def record(answers: dict[str, Answer], events: Iterable[Tokens | Failed]) -> None:
    for event in events:
        answer = answers[event.request_id]
        assert answer.finish_reason is None, "an event after the end"
        assert answer.failed is None, "an event after the end"
        if isinstance(event, Failed):
            answer.failed = event
            continue
        answer.token_ids += event.token_ids
        answer.logprobs += event.logprobs or []
        answer.finish_reason = event.finish_reason
        answer.num_cached_tokens = event.num_cached_tokens


def drive(engine: Engine, commands: Iterable[Generate], max_steps: int = 5000) -> dict[str, Answer]:
    """Add all commands at once and step until nothing is left."""
    answers: dict[str, Answer] = {}
    for command in commands:
        answers[command.request_id] = Answer(failed=engine.add(command))
    for _ in range(max_steps):
        if not engine.has_work:
            return answers
        record(answers, engine.step())
        engine.check_invariants()
    raise AssertionError("the engine does not come to an end")


def solo(engine: Engine, prompt: Sequence[int], max_tokens: int = 8, **sampling: Any) -> Answer:
    return drive(engine, [greedy("solo", prompt, max_tokens, **sampling)])["solo"]


def next_logits(engine: Engine, prompt: Sequence[int], salt: bytes = b"") -> Tensor:
    """Return the logits (vocab_size,) that follow a prompt, as the engine computes them."""
    seen: list[Tensor] = []
    run = engine._runner.run
    engine._runner.run = lambda chunks: seen.append(run(chunks)) or seen[-1]  # type: ignore[method-assign]
    try:
        drive(engine, [greedy("logits", prompt, 1, salt=salt)])
    finally:
        engine._runner.run = run  # type: ignore[method-assign]
    return seen[-1][-1].float()


def load_reference(model_path: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(
        model_path, dtype=torch.float32, attn_implementation="eager"
    ).eval()


@torch.inference_mode()
def reference_logits(model: Any, token_ids: Sequence[int]) -> Tensor:
    return model(input_ids=torch.tensor([list(token_ids)]), use_cache=False).logits[0, -1].float()


def reference_greedy(model: Any, prompt: Sequence[int], max_tokens: int = 8) -> list[int]:
    token_ids = list(prompt)
    for _ in range(max_tokens):
        token_ids.append(int(reference_logits(model, token_ids).argmax()))
    return token_ids[len(prompt) :]


def assert_same_text(
    model: Any, prompt: Sequence[int], expected: Sequence[int], actual: Sequence[int]
) -> None:
    """Assert equal ids, up to a first difference where the model itself is undecided."""
    for i, (a, b) in enumerate(zip(expected, actual, strict=False)):
        if a != b:
            top = reference_logits(model, [*prompt, *expected[:i]]).topk(2).values
            margin = float(top[0] - top[1])
            assert margin < MARGIN, f"token {i}: {a} expected, {b} given, margin {margin:.4f}"
            return
    assert len(expected) == len(actual)
