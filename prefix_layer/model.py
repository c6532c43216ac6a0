"""Loads a transformers decoder and finds out whether and how its KV can be paged.

Sizes are observed in a forward pass, never assumed from the configuration.
"""

import inspect
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from prefix_layer.attention import ATTENTION_NAME, bind_cache, register_attention
from prefix_layer.config import EngineConfig, weights_name
from prefix_layer.errors import ModelLoadError, UnsupportedModel
from prefix_layer.fingerprint import fingerprint_model
from prefix_layer.int8 import round_weights
from prefix_layer.kv_cache import LayerShape, ProbeCache
from prefix_layer.narrow import load_kernel

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_PAGEABLE_LAYERS = {"full_attention", "sliding_attention"}
_LENGTH_DEPENDENT_ROPE = {"longrope", "dynamic"}
_CACHE_ARGUMENTS = ("cache", "past_key_values")
_BROKEN_FOLDER = (
    *(OSError, ValueError, KeyError, IndexError, RuntimeError, ImportError),
    *(SafetensorError, struct.error),
)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model whose attention is paged. ``shapes`` has one entry per layer index.

    ``cache_argument`` is the name under which its forward takes the cache.
    """

    module: nn.Module
    config: Any
    fingerprint: str
    context_length: int
    vocab_size: int
    dtype: torch.dtype
    device: torch.device
    shapes: list[LayerShape]
    cache_argument: str


def load_model(config: EngineConfig) -> LoadedModel:
    """Load the model folder for paged attention.

    Raises:
        ModelLoadError: the folder, dtype or device is not usable.
        UnsupportedModel: paged attention would not compute what the model means.
    """
    folder = config.model_path
    device = _device(config.device)
    model_config = _read_config(folder)
    _refuse_unpageable(model_config)
    dtype = _dtype(config.dtype, model_config, device)
    module = _read_weights(folder, dtype).to(device)
    _refuse_foreign_attention(module)
    if config.weights == "int8":
        round_weights(module, load_kernel())
    cache_argument = _cache_argument(module)
    text_config = model_config.get_text_config()
    return LoadedModel(
        module=module,
        config=text_config,
        fingerprint=fingerprint_model(folder, weights_name(str(dtype), config)),
        context_length=_context_length(text_config),
        vocab_size=module.get_input_embeddings().weight.shape[0],
        dtype=dtype,
        device=device,
        shapes=_observe_shapes(module, text_config, cache_argument),
        cache_argument=cache_argument,
    )


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _read_config(folder: Path) -> Any:
    if not (folder / "config.json").is_file():
        raise ModelLoadError(f"no model in {folder}: config.json is missing")
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True)
    except _BROKEN_FOLDER as error:
        raise ModelLoadError(
            f"config.json in {folder} is not usable: {_one_line(error)}"
        ) from error


def _read_weights(folder: Path, dtype: torch.dtype) -> Any:
    register_attention()
    disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation=ATTENTION_NAME,
            local_files_only=True,
            output_loading_info=True,
            gguf_file=_gguf_file(folder),
        )
    except _BROKEN_FOLDER as error:
        raise ModelLoadError(f"model in {folder} can't be loaded: {_one_line(error)}") from error
    module, info = loaded
    missing = sorted(info["missing_keys"])
    if missing:
        raise ModelLoadError(f"weights in {folder} lack {len(missing)} tensors, as {missing[0]}")
    return module.eval().requires_grad_(requires_grad=False)


def _gguf_file(folder: Path) -> str | None:
    """Name the GGUF file that holds the weights; None when they lie in another form.

    Raises:
        ModelLoadError: there are several, and nothing says which.
    """
    if any(folder.glob("*.safetensors")) or any(folder.glob("*.bin")):
        return None
    names = sorted(path.name for path in folder.glob("*.gguf"))
    if len(names) > 1:
        raise ModelLoadError(f"{folder} holds several GGUF files: {', '.join(names)}; leave one")
    return names[0] if names else None


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ModelLoadError(f"device {name!r} is unknown; use auto, cpu or cuda") from None
    if device.type not in ("cpu", "cuda"):
        raise ModelLoadError(f"device {name!r} is not supported; use auto, cpu or cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ModelLoadError(f"device {name!r} is asked for, but there is no CUDA device")
    return device


def _dtype(name: str, model_config: Any, device: torch.device) -> torch.dtype:
    """Resolve ``auto``: float32 on a CPU, where it is exact and fast; else as the weights are."""
    if name != "auto":
        if name not in _DTYPES:
            raise ModelLoadError(f"dtype {name!r} is unknown; use auto, {', '.join(_DTYPES)}")
        return _DTYPES[name]
    stored = getattr(model_config, "dtype", None)
    if device.type == "cpu" or not isinstance(stored, torch.dtype):
        return torch.float32
    return stored


def _refuse_unpageable(model_config: Any) -> None:
    kind = model_config.model_type
    if model_config.is_encoder_decoder:
        raise UnsupportedModel(f"{kind} is an encoder-decoder; only decoders can be served")
    others = set(getattr(model_config.get_text_config(), "layer_types", None) or ())
    others -= _PAGEABLE_LAYERS
    if others:
        raise UnsupportedModel(
            f"{kind} has layers that can't be paged: {', '.join(sorted(others))}"
        )


def _refuse_foreign_attention(module: Any) -> None:
    kind = module.config.model_type
    if getattr(module, "_is_stateful", False):
        raise UnsupportedModel(f"{kind} keeps recurrent state, which can't be paged")
    if not getattr(module, "_supports_attention_backend", False):
        raise UnsupportedModel(f"{kind} does not let its attention be replaced in transformers")


def _cache_argument(module: nn.Module) -> str:
    arguments = inspect.signature(module.forward).parameters
    if "position_ids" not in arguments:
        raise UnsupportedModel(f"{type(module).__name__} takes no explicit positions")
    for name in _CACHE_ARGUMENTS:
        if name in arguments:
            return name
    raise UnsupportedModel(f"{type(module).__name__} takes no cache")


def _context_length(text_config: Any) -> int:
    """Return the longest sequence whose KV does not depend on how long it will become."""
    length = getattr(text_config, "max_position_embeddings", None)
    if not isinstance(length, int) or length < 1:
        raise UnsupportedModel(f"{text_config.model_type} does not say how long its context is")
    rope = getattr(text_config, "rope_parameters", None) or {}
    per_layer = [value for value in rope.values() if isinstance(value, dict)]
    for parameters in per_layer or [rope]:
        if parameters.get("rope_type") in _LENGTH_DEPENDENT_ROPE:
            length = min(length, parameters.get("original_max_position_embeddings") or length)
    return length


def _observe_shapes(module: nn.Module, text_config: Any, cache_argument: str) -> list[LayerShape]:
    """Run two tokens through the model and note what each layer writes and how it attends."""
    probe = ProbeCache()
    bind_cache(module, probe)
    device = next(module.parameters()).device
    arguments = {
        "input_ids": torch.zeros(1, 2, dtype=torch.long, device=device),
        "position_ids": torch.arange(2, device=device)[None],
        "use_cache": True,
        cache_argument: probe,
    }
    with torch.inference_mode():
        try:
            module(**arguments)
        except (AttributeError, TypeError, IndexError) as error:
            raise UnsupportedModel(
                f"{text_config.model_type} uses its cache in another way: {_one_line(error)}"
            ) from error
    _check_observed(probe, text_config)
    return [probe.shapes[i] for i in range(len(probe.shapes))]


def _check_observed(probe: ProbeCache, text_config: Any) -> None:
    kind = text_config.model_type
    layers = list(range(text_config.num_hidden_layers))
    if sorted(probe.attended) != layers or sorted(probe.shapes) != layers:
        raise UnsupportedModel(f"{kind} does not attend once per layer through the interface")
    if any(not shape.num_kv_heads for shape in probe.shapes.values()):
        raise UnsupportedModel(f"{kind} shares KV between layers, which can't be paged yet")
    layer_types = getattr(text_config, "layer_types", None)
    for i, layer_type in enumerate(layer_types or ()):
        expected = text_config.sliding_window if layer_type == "sliding_attention" else None
        if probe.shapes[i].window != expected:
            raise UnsupportedModel(f"{kind} does not pass layer {i}'s window {expected}")
