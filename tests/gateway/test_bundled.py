"""The bundled models as prepared on this machine: the right weights, tokenizers and settings."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from gateway.bundled import BUNDLED, EMBEDDER, BundledModel, BundledModels, inspect, verify
from gateway.bundled.e5_file import read_e5_file
from gateway.bundled.errors import SourceCorrupt
from gateway.bundled.manifest import read_manifest, record_files


def test_models_answer_as_known_when_verified(
    bundled_models: BundledModels, models_dir: Path
) -> None:
    """Every file has its checksum, the chat model knows Paris, the embedder its cosines."""
    outputs = verify(models_dir)
    assert outputs["smollm2-135m-instruct"] == "The capital of France is Paris."
    assert outputs["multilingual-e5-small"] == "0.9936 0.9645 0.6810"


def test_both_models_are_ready_when_prepared(
    bundled_models: BundledModels, models_dir: Path
) -> None:
    """The listing agrees with what prepare gave."""
    states = {state.model_id: state for state in inspect(models_dir)}
    assert {state.state for state in states.values()} == {"ready"}
    assert states["smollm2-135m-instruct"].path == bundled_models.chat_path
    assert states["multilingual-e5-small"].path == bundled_models.embedder_path


@pytest.mark.slow
@pytest.mark.parametrize("model", BUNDLED, ids=lambda model: model.model_id)
def test_a_conversion_gives_the_prepared_bytes_when_run_again(
    model: BundledModel, bundled_models: BundledModels, models_dir: Path, tmp_path: Path
) -> None:
    """Same source, same bytes; a converter that makes others needs a raised version."""
    manifest = read_manifest(models_dir / model.model_id)
    assert manifest is not None
    try:
        model.converter().convert(model.source.locate(), tmp_path)
        assert record_files(tmp_path) == manifest.files
    finally:
        shutil.rmtree(tmp_path)


def test_no_model_library_is_imported_when_everything_is_ready(
    bundled_models: BundledModels, models_dir: Path
) -> None:
    """A second start pays for reading two manifests only."""
    script = (
        "import pathlib, sys; from gateway.bundled import prepare;"
        f"prepare(pathlib.Path({str(models_dir)!r}));"
        "assert not {'torch', 'numpy', 'transformers', 'gguf'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_generation_ends_with_the_turn_when_the_chat_model_runs(bundled_chat_model: Path) -> None:
    """Without the end-of-turn id the model would talk on for ever."""
    tokenizer = Tokenizer.from_file(str(bundled_chat_model / "tokenizer.json"))
    config = json.loads((bundled_chat_model / "generation_config.json").read_text())
    assert tokenizer.token_to_id("<|im_end|>") in config["eos_token_id"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("in 2024", ["in", "Ġ", "2", "0", "2", "4"]),
        ("<|im_start|>user", ["<|im_start|>", "user"]),
        ("don't", ["don", "'t"]),
    ],
)
def test_chat_text_is_cut_as_in_training_when_tokenized(
    bundled_chat_model: Path, text: str, tokens: list[str]
) -> None:
    """Digits stand alone, special tokens are whole, contractions split before the apostrophe."""
    tokenizer = Tokenizer.from_file(str(bundled_chat_model / "tokenizer.json"))
    assert tokenizer.encode(text).tokens == tokens


@pytest.mark.parametrize("text", ["Hello, world!", "  two  spaces\n\ttab", "你好，世界 🙂‍↔️ é é"])
def test_chat_text_comes_back_when_decoded(bundled_chat_model: Path, text: str) -> None:
    """Byte-level BPE loses nothing."""
    tokenizer = Tokenizer.from_file(str(bundled_chat_model / "tokenizer.json"))
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("query: ＡＢＣ  １２３", ["<s>", "▁que", "ry", ":", "▁ABC", "▁123", "</s>"]),
        ("好的～", ["<s>", "▁", "好的", "～", "</s>"]),
    ],
)
def test_embedded_text_is_normalised_as_in_training_when_tokenized(
    bundled_embedder: Path, text: str, tokens: list[str]
) -> None:
    """Width and repeated spaces are folded, but for the full-width tilde."""
    tokenizer = Tokenizer.from_file(str(bundled_embedder / "tokenizer.json"))
    assert tokenizer.encode(text).tokens == tokens


def test_weights_are_refused_when_the_file_is_cut_or_of_another_kind(tmp_path: Path) -> None:
    """Damage is named, whatever part of the file it hits."""
    whole = EMBEDDER.source.locate().read_bytes()
    for length in (0, 3, 30, 100_000, 4_000_000):
        path = tmp_path / f"cut-{length}"
        path.write_bytes(whole[:length])
        with pytest.raises(SourceCorrupt):
            read_e5_file(path)


def test_a_tensor_is_refused_when_it_has_another_shape() -> None:
    """A model of other sizes cannot be read as ours by accident."""
    file = read_e5_file(EMBEDDER.source.locate())
    with pytest.raises(SourceCorrupt, match=r"emb\.ln\.w"):
        file.tensor("emb.ln.w", 385)
    with pytest.raises(SourceCorrupt, match="no such"):
        file.tensor("no such", 384)
    assert file.tensor("emb.ln.w", 384).dtype == np.float32
