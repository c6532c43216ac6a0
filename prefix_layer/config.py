"""What an engine is built from; knows no environment and no files but the model folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

EvictionName = Literal["lru", "lfu", "fifo", "arc", "s3fifo", "adaptive"]

CodecName = Literal["none", "int8"]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one engine process.

    ``kv_tokens`` is the device pool's size in tokens, rounded down to whole blocks;
    ``kv_ttl_s`` is how long cached KV lives without a use, 0 for as long as there is room;
    ``weights`` int8 rounds them to 8 bits (float32 on a CPU only). ``precision`` is that of float32
    products on a CPU: ``high`` lets those of 4- and 8-bit weights take 16 bits of an activation,
    ``auto`` does so where ``weights`` are int8.
    ``max_batch_tokens`` bounds the tokens of one step, ``max_sequences`` those that run at once.
    ``host_kv_bytes`` and ``disk_kv_bytes`` bound what is kept of KV that leaves the device, 0 for
    nothing; ``kv_dir`` is the disk's folder, which engines may share. ``kv_codec`` is how it is
    kept. Kept KV is loaded when that was measured to be faster than computing it, or ``always``.
    """

    model_path: Path
    dtype: str = "auto"  # auto | float32 | bfloat16 | float16
    device: str = "auto"  # auto | cpu | cuda | cuda:N
    block_size: int = 16
    kv_tokens: int = 32_768
    max_batch_tokens: int = 512
    max_sequences: int = 32
    eviction: EvictionName = "adaptive"
    kv_ttl_s: float = 0.0
    prefix_caching: bool = True
    num_threads: int | None = None
    weights: Literal["auto", "int8"] = "auto"
    precision: Literal["auto", "high", "highest"] = "auto"
    host_kv_bytes: int = 0
    disk_kv_bytes: int = 0
    kv_dir: Path | None = None
    kv_codec: CodecName = "none"
    kv_load: Literal["measured", "always"] = "measured"
    kv_events: Path | None = None


def weights_name(dtype: str, config: EngineConfig) -> str:
    """Name the numbers a model computes with, for its fingerprint."""
    named = [dtype]
    if config.weights != "auto":
        named.append(config.weights)
    if config.precision != "auto":
        named.append(config.precision)
    return "+".join(named)


def encode_config(config: EngineConfig) -> str:
    """Return the settings as JSON, for the engine process's command line."""
    return msgspec.json.encode(config, enc_hook=str).decode()


def decode_config(text: str) -> EngineConfig:
    """Read what `encode_config` wrote.

    Raises:
        msgspec.DecodeError: not such a text.
    """
    return msgspec.json.decode(text, type=EngineConfig, dec_hook=lambda _, value: Path(value))
