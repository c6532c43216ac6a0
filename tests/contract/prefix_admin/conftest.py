"""A tiny local model, gateways that serve it, and one that all these tests share."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from tests.contract.prefix_admin.desk import Desk
from tests.contract.stack import Stack, serving

TEXTS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@pytest.fixture(scope="session")
def tiny_chat(bundled_chat_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the bundled model's texts and tiny random weights."""
    folder = tmp_path_factory.mktemp("tiny-chat")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = LlamaConfig(vocab_size=49_152, max_position_embeddings=8192, **sizes, **heads)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    for name in TEXTS:
        if (bundled_chat_model / name).is_file():
            shutil.copy(bundled_chat_model / name, folder / name)
    template = bundled_chat_model / "chat_template.jinja"
    if template.is_file():
        shutil.copy(template, folder / template.name)
    return folder


@pytest.fixture(scope="session")
def serve(
    tiny_chat: Path, serving_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    def start(**settings: str) -> Any:
        settings = {"SEMANTIC__ENABLED": "false", "LOCAL__MODEL": str(tiny_chat)} | settings
        return serving(tmp_path_factory.mktemp("prefix"), serving_models, **settings)

    return start


@pytest.fixture(scope="session")
def tiny(serve: Callable[..., Any]) -> Iterator[Stack]:
    with serve(LOCAL__KV_TOKENS="16384") as stack:
        yield stack


@pytest.fixture
def desk(tiny: Stack) -> Desk:
    desk = Desk(tiny)
    desk.reset()
    return desk
