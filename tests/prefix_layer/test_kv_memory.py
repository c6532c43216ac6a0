"""Memory read from a configuration is what the model writes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from prefix_layer.config import EngineConfig
from prefix_layer.errors import ModelLoadError
from prefix_layer.kv_memory import read_kv_memory
from prefix_layer.model import load_model
from prefix_layer.tiers.codec import Int8Codec
from tests.prefix_layer.test_architectures import MAKES


@pytest.mark.parametrize("make", MAKES)
def test_bytes_are_what_the_model_is_seen_to_write(
    make: str, make_tiny: Callable[..., Path]
) -> None:
    """Layers, heads, windows and sizes of keys and values, from config.json alone."""
    config_class, settings = MAKES[make]
    if make == "gpt2":  # has no such thing, and the fixture's value is left in its file
        settings = settings | {"num_key_value_heads": 4}
    folder = make_tiny(config_class, **settings)
    seen = load_model(EngineConfig(folder, dtype="float32", device="cpu")).shapes
    memory = read_kv_memory(folder)
    assert memory.bytes_per_token() == 4 * sum(shape.num_values for shape in seen)
    assert [layer.window for layer in memory.layers] == [shape.window for shape in seen]


def test_coded_bytes_are_what_the_codec_writes(tiny_llama: Path) -> None:
    """Numbers and scales of a block."""
    memory = read_kv_memory(tiny_llama)
    views = [
        torch.zeros(16, layer.num_heads, dim)
        for layer in memory.layers
        for dim in (layer.key_dim, layer.value_dim)
    ]
    assert 16 * memory.bytes_per_token("int8") == Int8Codec(views).num_bytes


CONFIGS: dict[str, tuple[dict[str, Any], str, int]] = {
    "llama-3-8b": (
        {
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "hidden_size": 4096,
            "torch_dtype": "bfloat16",
        },
        "GQA",
        131_072,
    ),
    "deepseek-v3": (
        {
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "hidden_size": 7168,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "torch_dtype": "bfloat16",
        },
        "MLA",
        70_272,
    ),
    "vision": (
        {
            "model_type": "some_vl",
            "text_config": {
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "hidden_size": 32,
                "dtype": "float16",
            },
        },
        "MHA",
        256,
    ),
    "multi-query": (
        {"n_layer": 2, "n_head": 4, "n_embd": 32, "multi_query": True},
        "MQA",
        128,
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_known_models_take_what_is_known_when_read(name: str, tmp_path: Path) -> None:
    """Llama 3 8B has 128 KiB a token, DeepSeek V3 69 KiB of latents."""
    values, kind, num_bytes = CONFIGS[name]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    memory = read_kv_memory(tmp_path)
    assert memory == read_kv_memory(path)
    assert (memory.kind, memory.bytes_per_token()) == (kind, num_bytes)


def test_windows_bound_what_is_in_use_when_a_context_is_long(tmp_path: Path) -> None:
    """Five layers in six look back 10 tokens; layers without KV take nothing."""
    path = tmp_path / "c.json"
    path.write_text(
        json.dumps(
            {
                "num_hidden_layers": 4,
                "num_attention_heads": 2,
                "head_dim": 4,
                "sliding_window": 10,
                "layer_types": [
                    "sliding_attention",
                    "linear_attention",
                    "full_attention",
                    "sliding_attention",
                ],
            }
        )
    )
    memory = read_kv_memory(path, "float16")
    assert memory.bytes_per_token() == 3 * 2 * 8 * 2
    assert memory.bytes_in_use(100) == (100 + 10 + 10) * 2 * 8 * 2
    assert memory.bytes_in_use(5) == 5 * memory.bytes_per_token()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "is no JSON"),
        ("[]", "is no model configuration"),
        ("{}", "num_hidden_layers must be"),
        ('{"num_hidden_layers": 2, "num_attention_heads": "many"}', "num_attention_heads must be"),
        ('{"num_hidden_layers": 2, "num_attention_heads": 4}', "head_dim must be"),
        ('{"dtype": "int3"}', "dtype 'int3' is not known"),
    ],
)
def test_configuration_is_refused_when_it_has_no_sizes(
    text: str, message: str, tmp_path: Path
) -> None:
    """The line names the file and what it lacks."""
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ModelLoadError, match=message):
        read_kv_memory(tmp_path)
