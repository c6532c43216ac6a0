"""A folder whose weights lie in a GGUF file is served like any other."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
import transformers as tf
from torch import Tensor

from prefix_layer.errors import ModelLoadError
from prefix_layer.layer_stack import LayerStack
from prefix_layer.narrow import load_kernel
from tests.prefix_layer.driving import load_reference, make_engine, next_logits, reference_logits

HEADS, KV_HEADS, LAYERS = 4, 2, 3
WIDE = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 16}
PROMPT = list(range(40, 75))


def interleaved(weight: Tensor, heads: int) -> Tensor:
    """Order rows as llama.cpp wants them for its rotary positions."""
    return weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def write_gguf(model: Any, target: Path, kind: gguf.GGMLQuantizationType) -> None:
    """Write a Llama model; matrices in the given kind, norms in float32."""
    config, writer = model.config, gguf.GGUFWriter(target, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, LAYERS)
    for name, weight in model.state_dict().items():
        heads = HEADS if "q_proj" in name else KV_HEADS if "k_proj" in name else 0
        values = (interleaved(weight, heads) if heads else weight).float().contiguous().numpy()
        target_name = names.get_name(name, (".weight", ".bias"))
        if values.ndim > 1:
            writer.add_tensor(target_name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(target_name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def folder(make_tiny: Callable[..., Path], tmp_path: Path) -> Path:
    """A Llama folder with 8-bit GGUF weights and nothing else but the configuration."""
    plain = make_tiny(tf.LlamaConfig, **WIDE)
    write_gguf(load_reference(plain), tmp_path / "m.gguf", gguf.GGMLQuantizationType.Q8_0)
    shutil.copy(plain / "config.json", tmp_path)
    return tmp_path


def test_logits_equal_transformers_when_weights_are_gguf(folder: Path) -> None:
    """The engine computes what transformers computes from the same file, in its own 8 bits."""
    reference: Any = tf.AutoModelForCausalLM.from_pretrained(folder, gguf_file="m.gguf").eval()
    engine = make_engine(folder)
    for _ in range(2):
        expected = reference_logits(reference, PROMPT)
        difference = (next_logits(engine, PROMPT) - expected).abs().max()
        assert difference < 1e-4 * max(1, expected.abs().max())
    if load_kernel() is not None:
        stack = engine._model.module.model.layers[0]
        assert isinstance(stack, LayerStack)
        (qkv, *_) = stack.layers[0].products
        assert qkv.narrow is not None
        assert qkv.narrow.bits == 8


def test_load_is_refused_when_several_gguf_files_lie_there(folder: Path) -> None:
    """Which of them is meant can't be guessed."""
    shutil.copy(folder / "m.gguf", folder / "n.gguf")
    with pytest.raises(ModelLoadError, match=r"several GGUF files: m\.gguf, n\.gguf"):
        make_engine(folder)


def test_load_is_refused_when_the_gguf_file_is_broken(folder: Path) -> None:
    """A cut file is one clear line, not a traceback."""
    data = (folder / "m.gguf").read_bytes()
    (folder / "m.gguf").write_bytes(data[:200])
    with pytest.raises(ModelLoadError):
        make_engine(folder)
