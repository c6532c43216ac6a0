"""Makes the tiers that the settings ask for; one that can't be had is off, with a word in the log.

Sizes come from the blocks of the pool as they are.
"""

import logging
import math
from pathlib import Path

from torch import Tensor

from prefix_layer.config import EngineConfig
from prefix_layer.tiers.block_file import FORMAT_VERSION
from prefix_layer.tiers.block_key import BlockLayout
from prefix_layer.tiers.codec import make_codec
from prefix_layer.tiers.disk import DiskTier
from prefix_layer.tiers.host import HostTier
from prefix_layer.tiers.kv_tiers import KvTiers, Views
from prefix_layer.tiers.rates import Rates
from prefix_layer.tiers.worker import DiskWorker

_PASSAGE_BYTES = 64 << 20
_MIN_PASSAGE_BLOCKS = 32
_MAX_PASSAGE_BLOCKS = 512
_MIN_HOST_BLOCKS = 4  # of a host tier that blocks to and from the disk pass as well

log = logging.getLogger("strata.kv")


def open_tiers(config: EngineConfig, views: Views, fingerprint: str) -> KvTiers | None:
    """Open host and disk; None when both are off.

    ``fingerprint`` names the model and its dtype; ``views`` gives a device block's KV.
    """
    if not config.prefix_caching or not (config.host_kv_bytes or config.disk_kv_bytes):
        return None
    sample = views(0)
    codec = make_codec(config.kv_codec, sample)
    disk = _open_disk(config, _layout(config, sample, fingerprint), codec.num_bytes)
    num_kept = _num_host_blocks(config, codec.num_bytes, serves_disk=disk is not None)
    num_slots = num_kept or (0 if disk is None else _num_passage_blocks(codec.num_bytes))
    host = _open_host(config, sample[0], codec.num_bytes, num_slots)
    if host is None:
        return None
    keeps_host = num_kept > 0
    rates = Rates(config.block_size, always=config.kv_load == "always")
    worker = None if disk is None else DiskWorker(disk)
    return KvTiers(
        views, config.block_size, codec, host, disk, worker, rates, keeps_host=keeps_host
    )


def _layout(config: EngineConfig, sample: list[Tensor], fingerprint: str) -> BlockLayout:
    pairs = zip(sample[::2], sample[1::2], strict=True)
    return BlockLayout(
        version=FORMAT_VERSION,
        model=fingerprint,
        dtype=str(sample[0].dtype).removeprefix("torch."),
        codec=config.kv_codec,
        block_size=config.block_size,
        shapes=[(key.shape[1], key.shape[2], value.shape[2]) for key, value in pairs],
    )


def _open_disk(config: EngineConfig, layout: BlockLayout, block_bytes: int) -> DiskTier | None:
    if not config.disk_kv_bytes:
        return None
    if config.disk_kv_bytes < 2 * block_bytes:
        log.warning("disk KV is off: a block takes %d bytes", block_bytes)
        return None
    folder = config.kv_dir or Path("kv")
    try:
        return DiskTier(folder, layout, config.disk_kv_bytes, ttl_s=config.kv_ttl_s or math.inf)
    except OSError as error:
        log.warning("disk KV is off: %s", error)
        return None


def _num_host_blocks(config: EngineConfig, block_bytes: int, *, serves_disk: bool) -> int:
    """Return how many blocks the host tier may keep; 0 when its room is too small to be one."""
    num_blocks = config.host_kv_bytes // block_bytes
    least = _MIN_HOST_BLOCKS if serves_disk else 1
    if config.host_kv_bytes and num_blocks < least:
        log.warning("host KV is off: %d blocks take %d bytes", least, least * block_bytes)
    return num_blocks if num_blocks >= least else 0


def _num_passage_blocks(block_bytes: int) -> int:
    """Return how many slots pass blocks to and from the disk where no host tier does."""
    return min(max(_PASSAGE_BYTES // block_bytes, _MIN_PASSAGE_BLOCKS), _MAX_PASSAGE_BLOCKS)


def _open_host(
    config: EngineConfig, sample: Tensor, block_bytes: int, num_slots: int
) -> HostTier | None:
    if not num_slots:
        return None
    try:
        ttl_s = config.kv_ttl_s or math.inf
        return HostTier(num_slots, block_bytes, pin_memory=sample.is_cuda, ttl_s=ttl_s)
    except RuntimeError as error:
        log.warning("host and disk KV are off: no memory for %d blocks (%s)", num_slots, error)
        return None
