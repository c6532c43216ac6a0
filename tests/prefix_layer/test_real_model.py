"""The bundled SmolLM2 through the engine is the model itself: same logits, same text."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from prefix_layer.config import EngineConfig
from prefix_layer.engine import Engine
from tests.prefix_layer.driving import (
    Answer,
    assert_same_text,
    drive,
    greedy,
    next_logits,
)

MAX_TOKENS = 10
SYSTEM = (
    "You are a careful assistant. Answer in one short sentence, name no sources, and never repeat "
    "the question. If you do not know, say so. Use plain words that a child can understand. "
) * 2
QUESTIONS = [
    "What is the capital of France?",
    "Name a fruit that is yellow.",
    "How many legs has a spider?",
    "你好，你是谁？",
    "Write a haiku about rain.",
    "What is 7 times 8?",
    "Translate 'good night' to Spanish.",
    "Why is the sky blue?",
    "Finish: once upon a time",
    "Give me a Python list of three colours.",
    "🌙 What does this picture show?",
    "Who wrote Romeo and Juliet?",
    "Is water wet?",
    "List the days of the week.",
    "What is the opposite of hot?",
    "Explain gravity.",
    "Which animal says moo?",
    "Count from one to five.",
    "What colour is grass?",
    "Say hello in German.",
    "What is a prime number?",
    "Where do penguins live?",
]


class Chat:
    """The model as transformers runs it, and the prompts."""

    def __init__(self, folder: Path) -> None:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.prompts = {
            f"q{i}": tokenizer.apply_chat_template(
                [
                    {"role": "system", "content": SYSTEM if i % 2 else "Be brief."},
                    {"role": "user", "content": question},
                ],
                add_generation_prompt=True,
            )["input_ids"]
            for i, question in enumerate(QUESTIONS)
        }
        self.texts = {name: self.generate(prompt) for name, prompt in self.prompts.items()}

    @torch.inference_mode()
    def generate(self, prompt: list[int]) -> list[int]:
        ids = torch.tensor([prompt])
        out = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=MAX_TOKENS,
            do_sample=False,
            pad_token_id=2,
        )
        return out[0, len(prompt) :].tolist()

    def assert_same(self, answers: dict[str, Answer]) -> None:
        for name, answer in answers.items():
            assert_same_text(self.model, self.prompts[name], self.texts[name], answer.token_ids)


@pytest.fixture(scope="module")
def chat(bundled_chat_model: Path) -> Iterator[Chat]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield Chat(bundled_chat_model)
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def engine(bundled_chat_model: Path, chat: Chat) -> Engine:
    return Engine(EngineConfig(bundled_chat_model, device="cpu", kv_tokens=8192, num_threads=1))


def command(chat: Chat, name: str) -> Any:
    return greedy(name, chat.prompts[name], MAX_TOKENS, stop_token_ids=[2])


@pytest.mark.slow
def test_text_equals_generate_when_alone_and_eight_at_once(chat: Chat, engine: Engine) -> None:
    """Greedy text is transformers' over 22 prompts: cold alone, then warm and eight at once."""
    engine.reset()
    for name in chat.prompts:
        chat.assert_same(drive(engine, [command(chat, name)]))
    names = list(chat.prompts)
    for start in range(0, len(names), 8):
        answers = drive(engine, [command(chat, name) for name in names[start : start + 8]])
        chat.assert_same(answers)
        assert all(answer.num_cached_tokens > 0 for answer in answers.values())


@pytest.mark.slow
def test_text_equals_generate_when_eight_arrive_cold(chat: Chat, engine: Engine) -> None:
    """Eight cold prompts with common beginnings, batched from the first token on."""
    engine.reset()
    names = list(chat.prompts)[:8]
    chat.assert_same(drive(engine, [command(chat, name) for name in names]))


def test_logits_equal_cold_ones_when_the_prefix_is_warm(
    chat: Chat, engine: Engine, record_property: Callable[[str, object], None]
) -> None:
    """A cached prefix changes no logit by 1e-4, against a cold run and transformers itself."""
    engine.reset()
    prompt = chat.prompts["q1"]
    cold = next_logits(engine, prompt)
    reused = engine.stats("").tokens_by_source["device"]
    warm = next_logits(engine, prompt)
    assert engine.stats("").tokens_by_source["device"] - reused >= len(prompt) - 16
    with torch.inference_mode():
        own = chat.model(input_ids=torch.tensor([prompt]), use_cache=False).logits[0, -1]
    record_property("largest_logit_difference", float((warm - cold).abs().max()))
    torch.testing.assert_close(warm, cold, atol=1e-4, rtol=0)
    torch.testing.assert_close(cold, own, atol=1e-3, rtol=0)
