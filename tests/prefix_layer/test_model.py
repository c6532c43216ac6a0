"""What is wrong with a model folder is said in one line at load."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import LlamaConfig, T5Config

from prefix_layer.engine import Engine
from prefix_layer.errors import ModelLoadError, UnknownEviction, UnsupportedModel
from prefix_layer.fingerprint import fingerprint_model
from tests.prefix_layer.driving import load_reference, make_engine, next_logits, reference_logits
from tests.prefix_layer.tiny import TINY

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def copy(tiny_llama: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_llama, tmp_path / "model"))


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refusal(folder: Path, **settings: Any) -> str:
    with pytest.raises(ModelLoadError) as caught:
        make_engine(folder, **settings)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_load_says_so_when_the_folder_is_missing(tmp_path: Path) -> None:
    """A wrong path is named."""
    assert str(tmp_path / "none") in refusal(tmp_path / "none")


def test_load_says_so_when_weights_are_missing(copy: Path) -> None:
    """A folder without weights is not a model."""
    (copy / "model.safetensors").unlink()
    assert "safetensors" in refusal(copy)


def test_load_says_so_when_weights_are_cut_off(copy: Path) -> None:
    """A broken download is found before anything is served."""
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert str(copy) in refusal(copy)


def test_load_says_so_when_tensors_are_missing(copy: Path) -> None:
    """Weights that don't fill the model are refused, not filled with noise."""
    edit_config(copy, num_hidden_layers=4)
    assert "lack" in refusal(copy)


def test_load_says_so_when_config_is_not_json(copy: Path) -> None:
    """A broken config is named."""
    (copy / "config.json").write_text("{")
    assert "config.json" in refusal(copy)


def test_load_says_so_when_settings_are_impossible(tiny_llama: Path) -> None:
    """Settings that can't work are refused with what would."""
    assert "kv_tokens" in refusal(tiny_llama, kv_tokens=1)
    assert "block_size" in refusal(tiny_llama, block_size=0)
    with pytest.raises(UnknownEviction, match="lru"):
        make_engine(tiny_llama, eviction="magic")


def test_load_is_refused_when_the_model_is_an_encoder_decoder(tmp_path: Path) -> None:
    """Only decoders have a KV that a prefix determines."""
    T5Config().save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match="encoder-decoder"):
        make_engine(tmp_path)


def test_load_is_refused_when_paging_computes_something_else(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check at load runs the real thing: a wrong scale does not get through."""

    def misscaled(*args: Any) -> Any:
        *rest, options = args
        from dataclasses import replace  # noqa: PLC0415

        return attend(*rest, replace(options, scaling=options.scaling * 1.5))

    from prefix_layer import kv_cache  # noqa: PLC0415

    attend = kv_cache.attend
    monkeypatch.setattr(kv_cache, "attend", misscaled)
    with pytest.raises(UnsupportedModel, match="differently"):
        make_engine(tiny_llama)


def test_context_is_the_models_when_the_pool_is_larger(tiny_llama: Path) -> None:
    """Ready tells what one sequence can have."""
    ready = make_engine(tiny_llama, kv_tokens=4096).ready
    assert (ready.context_length, ready.vocab_size) == (256, TINY["vocab_size"])
    assert (ready.block_size, ready.num_blocks) == (4, 1024)
    assert (ready.dtype, ready.device) == ("float32", "cpu")


def test_context_ends_where_rope_would_change_when_it_depends_on_length(copy: Path) -> None:
    """KV that would change with the sequence's later length is never cached."""
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10_000.0,
        "original_max_position_embeddings": 64,
        "factor": 4.0,
        "short_factor": [1.0] * 4,
        "long_factor": [2.0] * 4,
    }
    edit_config(copy, rope_parameters=rope)
    engine = make_engine(copy)
    assert engine.ready.context_length == 64
    prompt = list(range(3, 63))
    expected = reference_logits(load_reference(copy), prompt)
    for _ in range(2):
        difference = (next_logits(engine, prompt) - expected).abs().max()
        assert difference < 1e-4 * expected.abs().max()


def test_half_precision_runs_when_asked_for(tiny_llama: Path) -> None:
    """bfloat16 serves, close to what float32 gives."""
    from prefix_layer.config import EngineConfig  # noqa: PLC0415

    config = EngineConfig(tiny_llama, dtype="bfloat16", device="cpu", block_size=4, kv_tokens=256)
    engine = Engine(config)
    assert engine.ready.dtype == "bfloat16"
    prompt = list(range(3, 30))
    full = next_logits(make_engine(tiny_llama), prompt)
    cold, warm = next_logits(engine, prompt), next_logits(engine, prompt)
    for half in (cold, warm):
        assert (half - full).norm() / full.norm() < 0.1
    assert engine.ready.model_fingerprint != make_engine(tiny_llama).ready.model_fingerprint


def test_fingerprint_changes_when_weights_config_or_dtype_do(copy: Path) -> None:
    """Anything that may change answers changes the name; a note of the library version does not."""
    first = fingerprint_model(copy, "float32")
    assert fingerprint_model(copy, "bfloat16") != first
    edit_config(copy, transformers_version="0")
    assert fingerprint_model(copy, "float32") == first
    weights = copy / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    second = fingerprint_model(copy, "float32")
    assert second != first
    edit_config(copy, rope_parameters={"rope_type": "default", "rope_theta": 5.0})
    assert fingerprint_model(copy, "float32") != second


def test_weights_of_another_vocabulary_are_read_when_sizes_differ(make_tiny: Any) -> None:
    """Sizes come from the model: heads wider than hidden / heads, an odd vocabulary."""
    folder = make_tiny(LlamaConfig, vocab_size=131, head_dim=20, num_hidden_layers=1)
    engine = make_engine(folder)
    assert engine.ready.vocab_size == 131
    assert engine._kv.bytes_per_slot == 2 * 2 * 20 * 4
