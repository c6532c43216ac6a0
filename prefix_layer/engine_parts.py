"""The parts of an engine, made as its configuration says."""

import time

from prefix_layer.config import EngineConfig
from prefix_layer.errors import ModelLoadError
from prefix_layer.eviction import EvictionPolicy, TtlPolicy, make_policy
from prefix_layer.kv_cache import PagedKVCache
from prefix_layer.kv_events import KvEvents
from prefix_layer.model import LoadedModel
from prefix_layer.narrow import Precision, load_kernel

_MIN_SLOTS = 2


def eviction_policy(config: EngineConfig, num_blocks: int) -> EvictionPolicy:
    """Make the policy that chooses which block goes; with a time to live when one is set."""
    policy = make_policy(config.eviction, num_blocks)
    return TtlPolicy(policy, config.kv_ttl_s, time.monotonic) if config.kv_ttl_s else policy


def kv_fingerprint(model: LoadedModel, config: EngineConfig) -> str:
    """Name what a block's KV depends on: KV that was rounded is other KV."""
    lossy = config.kv_codec != "none" and bool(config.host_kv_bytes or config.disk_kv_bytes)
    return f"{model.fingerprint}+{config.kv_codec}" if lossy else model.fingerprint


def open_events(config: EngineConfig) -> KvEvents | None:
    """Open the socket on which routers hear of blocks; None when it is not wanted."""
    return None if config.kv_events is None else KvEvents(config.kv_events, config.block_size)


def count_blocks(config: EngineConfig) -> int:
    """Count the blocks of the pool.

    Raises:
        ModelLoadError: a size is below 1, or the pool has room for less than two tokens.
    """
    if config.block_size < 1 or config.max_batch_tokens < 1 or config.max_sequences < 1:
        raise ModelLoadError("block_size, max_batch_tokens and max_sequences must be at least 1")
    count = config.kv_tokens // config.block_size
    if count * config.block_size < _MIN_SLOTS:
        raise ModelLoadError(f"kv_tokens {config.kv_tokens} leaves no room for {_MIN_SLOTS} tokens")
    return count


def allocate(model: LoadedModel, config: EngineConfig, num_slots: int) -> PagedKVCache:
    """Allocate the pool.

    Raises:
        ModelLoadError: there is no memory for it.
    """
    try:
        on_cpu = model.device.type == "cpu"
        kernel = load_kernel(_precision(config), model.dtype) if on_cpu else None
        return PagedKVCache(model.shapes, num_slots, model.dtype, model.device, kernel)
    except RuntimeError as error:
        raise ModelLoadError(f"no memory for a KV pool of {num_slots} tokens") from error


def _precision(config: EngineConfig) -> Precision:
    """Rounded weights need no more than 16 bits of an activation."""
    if config.precision == "auto":
        return "high" if config.weights == "int8" else "highest"
    return config.precision
