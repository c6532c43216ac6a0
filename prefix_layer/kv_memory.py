"""How much memory a model's KV takes, read from its config.json. Knows no weights and no torch.

Source: the configuration classes of transformers; tests compare with the tensors that models of
each kind are seen to write.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prefix_layer.config import CodecName
from prefix_layer.errors import ModelLoadError

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1}
_SCALE_BYTES = 4
_WINDOWED = {"sliding_attention", "chunked_attention"}
_NO_KV = {"linear_attention", "mamba", "conv", "recurrent"}


@dataclass(frozen=True, slots=True)
class LayerKv:
    """One layer's keys and values per token; ``window`` tokens are all it ever looks back at."""

    num_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None

    def num_bytes(self, dtype_bytes: int, codec: CodecName) -> int:
        """Return bytes per token; int8 keeps a float32 scale for each head's key and value."""
        num_values = self.num_heads * (self.key_dim + self.value_dim)
        if codec == "none":
            return num_values * dtype_bytes
        num_rows = self.num_heads * ((self.key_dim > 0) + (self.value_dim > 0))
        return num_values + num_rows * _SCALE_BYTES


@dataclass(frozen=True, slots=True)
class KvMemory:
    """The KV of all layers that keep any; latent attention keeps its latents."""

    kind: Literal["MHA", "GQA", "MQA", "MLA"]
    dtype: str
    layers: tuple[LayerKv, ...]

    @property
    def window(self) -> int | None:
        """The shortest window of any layer; None when all look back at everything."""
        return min((layer.window for layer in self.layers if layer.window), default=None)

    def bytes_per_token(self, codec: CodecName = "none") -> int:
        """Return what a token takes in the pool, where every layer keeps it."""
        return sum(layer.num_bytes(DTYPE_BYTES[self.dtype], codec) for layer in self.layers)

    def bytes_in_use(self, num_tokens: int, codec: CodecName = "none") -> int:
        """Return what attention can still read of ``num_tokens``, windows counted."""
        size = DTYPE_BYTES[self.dtype]
        return sum(
            min(num_tokens, layer.window or num_tokens) * layer.num_bytes(size, codec)
            for layer in self.layers
        )


def read_kv_memory(path: Path, dtype: str | None = None) -> KvMemory:
    """Read a model folder or its config.json; ``dtype`` overrides the configuration's.

    Raises:
        ModelLoadError: no such file, no sizes in it, or a dtype that is not known; one line.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        whole = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelLoadError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise ModelLoadError(f"{file} is no JSON: {error}") from error
    if not isinstance(whole, dict):
        raise ModelLoadError(f"{file} is no model configuration")
    inner = whole.get("text_config")
    config = _Config(file, {**whole, **inner} if isinstance(inner, dict) else whole)
    name = dtype or str(config.first("dtype", "torch_dtype") or "float32")
    if name not in DTYPE_BYTES:
        raise ModelLoadError(f"{file}: dtype {name!r} is not known; use {', '.join(DTYPE_BYTES)}")
    return _memory(config, name)


class _Config:
    """Reads sizes by any of the names that models give them."""

    def __init__(self, file: Path, values: Mapping[str, Any]) -> None:
        self._file = file
        self._values = values

    def first(self, *names: str) -> Any:
        """Return the first value that is there and not None."""
        return next((self._values[n] for n in names if self._values.get(n) is not None), None)

    def size(self, *names: str, default: int | None = None) -> int:
        """Return a positive whole number."""
        value = self.first(*names)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ModelLoadError(f"{self._file}: {names[0]} must be a number of at least 1")
        return value


def _memory(config: _Config, dtype: str) -> KvMemory:
    num_layers = config.size("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    num_heads = config.size("num_attention_heads", "n_head", "n_heads", "num_heads")
    num_kv_heads, key_dim, value_dim = _head_sizes(config, num_heads)
    layers = tuple(
        LayerKv(num_kv_heads, key_dim, value_dim, window) for window in _windows(config, num_layers)
    )
    if config.first("kv_lora_rank") is not None:
        return KvMemory("MLA", dtype, layers)
    if num_kv_heads == num_heads:
        return KvMemory("MHA", dtype, layers)
    return KvMemory("MQA" if num_kv_heads == 1 else "GQA", dtype, layers)


def _head_sizes(config: _Config, num_heads: int) -> tuple[int, int, int]:
    """Return key-value heads, and the sizes of a key and a value."""
    if config.first("kv_lora_rank") is not None:
        return 1, config.size("kv_lora_rank"), config.size("qk_rope_head_dim")
    hidden = config.first("hidden_size", "n_embd", "d_model")
    default = hidden // num_heads if isinstance(hidden, int) else None
    dim = config.size("head_dim", "attention_head_dim", default=default)
    shared = config.first("multi_query") is True
    names = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
    num_kv_heads = config.size(*names, default=1 if shared else num_heads)
    return num_kv_heads, dim, config.size("v_head_dim", default=dim)


def _windows(config: _Config, num_layers: int) -> list[int | None]:
    """Return each layer's window, without the layers that keep no KV."""
    window = config.first("sliding_window", "attention_chunk_size")
    if config.first("use_sliding_window") is False or not window:
        window = None
    kinds = config.first("layer_types")
    if isinstance(kinds, list):
        kept = [kind for kind in kinds[:num_layers] if kind not in _NO_KV]
        return [window if kind in _WINDOWED else None for kind in kept]
    pattern = config.first("sliding_window_pattern")
    if isinstance(pattern, int) and pattern > 1:
        return [None if (i + 1) % pattern == 0 else window for i in range(num_layers)]
    return [window] * num_layers
