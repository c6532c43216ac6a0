"""Small random models of any configuration class."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

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


def write_tiny(folder: Path, config_class: type, **settings: Any) -> Path:
    """Write a model whose random weights are large enough to decide; return the folder."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config_class(**(TINY | settings)))
    model.save_pretrained(folder)
    return folder
