"""The engine computes what transformers computes, for decoders of many makes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf

from prefix_layer.errors import UnsupportedModel
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

HYBRID = ["sliding_attention", "full_attention", "sliding_attention"]
MLA = {
    "q_lora_rank": 16,
    "kv_lora_rank": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "num_key_value_heads": 4,
    "first_k_dense_replace": 3,
}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
MAKES: dict[str, tuple[type, dict[str, Any]]] = {
    "llama": (tf.LlamaConfig, {}),
    "llama-multi-query": (tf.LlamaConfig, {"num_key_value_heads": 1}),
    "qwen2": (tf.Qwen2Config, {}),
    "qwen3": (tf.Qwen3Config, {"head_dim": 12}),
    "qwen3-moe": (
        tf.Qwen3MoeConfig,
        {
            "head_dim": 12,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
        },
    ),
    "mistral-window": (tf.MistralConfig, {"sliding_window": 7}),
    "mixtral": (tf.MixtralConfig, EXPERTS),
    "gemma2-softcap": (
        tf.Gemma2Config,
        {"sliding_window": 6, "attn_logit_softcapping": 2.0, "head_dim": 8, "layer_types": HYBRID},
    ),
    "gemma3": (
        tf.Gemma3TextConfig,
        {"sliding_window": 5, "head_dim": 8, "layer_types": HYBRID},
    ),
    "gpt2": (tf.GPT2Config, {"n_embd": 32, "n_head": 4, "n_layer": 3, "n_positions": 256}),
    "gpt-neox": (tf.GPTNeoXConfig, {"num_key_value_heads": 4}),
    "phi3": (tf.Phi3Config, {"sliding_window": None}),
    "olmo2": (tf.Olmo2Config, {}),
    "cohere2-hybrid": (tf.Cohere2Config, {"sliding_window": 6, "layer_types": HYBRID}),
    "smollm3": (tf.SmolLM3Config, {"no_rope_layers": [1, 1, 0], "no_rope_layer_interval": 3}),
    "granite": (tf.GraniteConfig, {"attention_multiplier": 0.3, "residual_multiplier": 0.5}),
    "deepseek-mla": (tf.DeepseekV3Config, MLA),
    "gpt-oss-sinks": (
        tf.GptOssConfig,
        EXPERTS | {"sliding_window": 6, "head_dim": 8, "layer_types": HYBRID},
    ),
}


@pytest.fixture(params=MAKES)
def folder(request: pytest.FixtureRequest, make_tiny: Callable[..., Path]) -> Path:
    config_class, settings = MAKES[request.param]
    return make_tiny(config_class, **settings)


def test_logits_equal_transformers_when_cold_and_warm(folder: Path) -> None:
    """However a prompt is cached and chunked, its logits are the model's."""
    reference, engine = load_reference(folder), make_engine(folder, max_batch_tokens=16)
    prompt = torch.randint(3, 300, (41,), generator=torch.Generator().manual_seed(1)).tolist()
    for length in (41, 41, 30, 17, 2):
        expected = reference_logits(reference, prompt[:length])
        difference = (next_logits(engine, prompt[:length]) - expected).abs().max()
        assert difference < 1e-4 * max(1, expected.abs().max())
    assert engine.stats("").tokens_by_source["device"] >= 40


def test_batch_equals_transformers_when_sequences_are_mixed(folder: Path) -> None:
    """Sequences of different lengths that share a prefix don't see each other's tokens."""
    reference, engine = load_reference(folder), make_engine(folder)
    generator = torch.Generator().manual_seed(2)
    shared = torch.randint(3, 300, (9,), generator=generator).tolist()
    prompts = [
        shared + torch.randint(3, 300, (n,), generator=generator).tolist() for n in (1, 5, 14)
    ]
    for _ in range(2):
        answers = drive(engine, [greedy(str(i), p) for i, p in enumerate(prompts)])
        for i, prompt in enumerate(prompts):
            expected = reference_greedy(reference, prompt)
            assert_same_text(reference, prompt, expected, answers[str(i)].token_ids)


REFUSED: dict[str, tuple[type, dict[str, Any]]] = {
    "alibi": (tf.BloomConfig, {"n_head": 4}),
    "recurrent-hybrid": (tf.JambaConfig, {"num_experts": 2, "num_experts_per_tok": 1}),
    "linear-attention": (tf.Qwen3NextConfig, {"num_experts": 2, "num_experts_per_tok": 1}),
    "recurrent-rwkv": (tf.RwkvConfig, {"attention_hidden_size": 32}),
    "bidirectional": (tf.BertConfig, {}),
    "encoder-decoder": (tf.PegasusConfig, {"encoder_layers": 1, "decoder_layers": 1}),
    "recurrent": (tf.MambaConfig, {"state_size": 4}),
    "convolution": (tf.Lfm2Config, {"layer_types": ["conv", "full_attention", "conv"]}),
    "chunked": (
        tf.Llama4TextConfig,
        {"num_local_experts": 2, "attention_chunk_size": 8, "head_dim": 8},
    ),
}


@pytest.mark.parametrize("make", REFUSED)
def test_load_is_refused_when_kv_can_not_be_paged(
    make: str, make_tiny: Callable[..., Path]
) -> None:
    """A model whose state blocks can't hold is refused by name at load, not answered wrongly."""
    config_class, settings = REFUSED[make]
    folder = make_tiny(config_class, **settings)
    with pytest.raises(UnsupportedModel, match=config_class.model_type):
        make_engine(folder)
