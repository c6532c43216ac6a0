"""Keeps KV that the device has no room for: in host memory, then in a folder on disk."""

from prefix_layer.tiers.block_key import BlockKey, BlockLayout, key_of, keys_of
from prefix_layer.tiers.codec import make_codec
from prefix_layer.tiers.disk import DiskTier
from prefix_layer.tiers.fetch import Fetch
from prefix_layer.tiers.host import HostTier
from prefix_layer.tiers.kv_tiers import KvTiers
from prefix_layer.tiers.opening import open_tiers
from prefix_layer.tiers.rates import Rates
from prefix_layer.tiers.tally import Tier

__all__ = [
    "BlockKey",
    "BlockLayout",
    "DiskTier",
    "Fetch",
    "HostTier",
    "KvTiers",
    "Rates",
    "Tier",
    "key_of",
    "keys_of",
    "make_codec",
    "open_tiers",
]
