from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig

TINY = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@pytest.fixture(scope="session")
def make_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a small random model of any configuration class; weights large enough to decide."""

    def make(config_class: type, **settings: Any) -> Path:
        folder = tmp_path_factory.mktemp(config_class.__name__)
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config_class(**(TINY | settings)))
        model.save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_llama(make_tiny: Callable[..., Path]) -> Path:
    return make_tiny(LlamaConfig)


@pytest.fixture(scope="session")
def byte_llama(make_tiny: Callable[..., Path]) -> Path:
    """A tiny random model whose tokens are single bytes, after three special ones."""
    folder = make_tiny(LlamaConfig)
    names = ["<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names[:3]])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
