"""SmolLM2-135M-Instruct: from the packaged 4-bit GGUF file to an ordinary transformers folder.

The folder is float32: a quantised weight is exactly ``scale * q + offset``, which float32 holds and
half precision does not, and a CPU loads it without converting.
"""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import safetensors.numpy
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

from gateway.bundled.errors import ModelUnsound, SourceCorrupt
from gateway.bundled.quiet import quiet_loading

KNOWN_QUESTION = "What is the capital of France?"
KNOWN_WORD = "Paris"

_ARCHITECTURE = "llama"
_BLOCK_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP_TENSORS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}

Fields = dict[str, Any]
Weight = npt.NDArray[np.float32]


def convert(source: Path, folder: Path) -> None:
    """Write weights, configuration, tokenizer and chat template into the empty folder.

    Raises:
        SourceCorrupt: the file is not a model this converter knows.
    """
    reader = gguf.GGUFReader(source)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    if fields.get("general.architecture") != _ARCHITECTURE:
        raise SourceCorrupt(f"{source} is not a {_ARCHITECTURE} model")
    safetensors.numpy.save_file(
        _weights(reader, fields), folder / "model.safetensors", metadata={"format": "pt"}
    )
    _write_json(folder / "config.json", _config(fields))
    _write_json(folder / "generation_config.json", _generation_config(fields))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(fields))
    (folder / "chat_template.jinja").write_text(fields["tokenizer.chat_template"], encoding="utf-8")
    _tokenizer(fields).save(str(folder / "tokenizer.json"))


def known_output(folder: Path) -> str:
    """Ask the prepared model a question and return its greedy answer.

    Raises:
        ModelUnsound: the answer is not the one everybody knows.
    """
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    with quiet_loading():
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": KNOWN_QUESTION}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    with torch.inference_mode():
        tokens = model.generate(**prompt, do_sample=False, max_new_tokens=24)
    answer = tokenizer.decode(tokens[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    if KNOWN_WORD not in answer:
        raise ModelUnsound(f"{folder} answers {answer!r} to {KNOWN_QUESTION!r}")
    return str(answer)


def _weights(reader: gguf.GGUFReader, fields: Fields) -> dict[str, Weight]:
    num_heads = {
        "attn_q": fields["llama.attention.head_count"],
        "attn_k": fields["llama.attention.head_count_kv"],
    }
    weights = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        kind = tensor.name.split(".")[-2]
        if kind in num_heads:
            values = _halves_order(values, num_heads[kind])
        weights[_weight_name(tensor.name)] = np.ascontiguousarray(values)
    return weights


def _weight_name(gguf_name: str) -> str:
    *block, kind, suffix = gguf_name.split(".")
    if block:
        return f"model.layers.{block[1]}.{_BLOCK_TENSORS[kind]}.{suffix}"
    return f"{_TOP_TENSORS[kind]}.{suffix}"


def _halves_order(values: Weight, num_heads: int) -> Weight:
    """Put the rotary dimensions of each head from interleaved pairs back into two halves.

    Source: ``LlamaModel.permute`` of llama.cpp's convert_hf_to_gguf.py, whose inverse this is.
    """
    rows, columns = values.shape
    pairs = values.reshape(num_heads, rows // num_heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def _config(fields: Fields) -> Fields:
    num_heads = fields["llama.attention.head_count"]
    hidden_size = fields["llama.embedding_length"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_act": "silu",
        "hidden_size": hidden_size,
        "head_dim": hidden_size // num_heads,
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": num_heads,
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": float(np.float32(fields["llama.attention.layer_norm_rms_epsilon"])),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": fields["llama.rope.freq_base"],
        },
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "vocab_size": fields["llama.vocab_size"],
        **_special_ids(fields),
    }


def _special_ids(fields: Fields) -> Fields:
    return {
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
    }


def _generation_config(fields: Fields) -> Fields:
    """End on the end of a turn, and on the end of a text, which base-model prompts lead to."""
    ends = [fields["tokenizer.ggml.eos_token_id"], fields["tokenizer.ggml.unknown_token_id"]]
    return {**_special_ids(fields), "eos_token_id": ends}


def _tokenizer(fields: Fields) -> Tokenizer:
    """Build the byte-level BPE tokenizer, in which every digit is a token of its own.

    Source: ``LLAMA_VOCAB_PRE_TYPE_SMOLLM`` in llama.cpp's llama-vocab.cpp.
    """
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = zip(tokens, fields["tokenizer.ggml.token_type"], strict=True)
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in kinds
            if kind == gguf.TokenType.CONTROL
        ]
    )
    return tokenizer


def _tokenizer_config(fields: Fields) -> Fields:
    tokens = fields["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "TokenizersBackend",
        "bos_token": tokens[fields["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[fields["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[fields["tokenizer.ggml.padding_token_id"]],
        "unk_token": tokens[fields["tokenizer.ggml.unknown_token_id"]],
        "clean_up_tokenization_spaces": False,
        "model_max_length": fields["llama.context_length"],
    }


def _write_json(path: Path, value: Fields) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
