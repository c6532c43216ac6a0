from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig

from prefix_layer.engine import Engine
from tests.prefix_layer.driving import make_engine
from tests.prefix_layer.tiny import write_tiny


@pytest.fixture(autouse=True, scope="module")
def torch_threads() -> Iterator[None]:
    """Leave torch as many threads as it had: an engine in this process sets its own number.

    With another number sums are rounded otherwise, and scores at a threshold's edge turn.
    """
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def make_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a small random model of any configuration class; weights large enough to decide."""

    def make(config_class: type, **settings: Any) -> Path:
        return write_tiny(tmp_path_factory.mktemp(config_class.__name__), config_class, **settings)

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


@pytest.fixture
def engine(tiny_llama: Path) -> Engine:
    return make_engine(tiny_llama)


@pytest.fixture
def cold_engine(tiny_llama: Path) -> Engine:
    return make_engine(tiny_llama, prefix_caching=False)
