"""Which cached block goes first when the pool is full. Pure: no tensors, no clock, no threads."""

from collections.abc import Callable

from prefix_layer.errors import UnknownEviction
from prefix_layer.eviction.adaptive import AdaptivePolicy
from prefix_layer.eviction.arc import ArcPolicy
from prefix_layer.eviction.base import EvictionPolicy
from prefix_layer.eviction.fifo import FifoPolicy
from prefix_layer.eviction.lfu import LfuPolicy
from prefix_layer.eviction.lru import LruPolicy
from prefix_layer.eviction.s3fifo import S3FifoPolicy
from prefix_layer.eviction.ttl import TtlPolicy

__all__ = [
    "POLICIES",
    "AdaptivePolicy",
    "ArcPolicy",
    "EvictionPolicy",
    "FifoPolicy",
    "LfuPolicy",
    "LruPolicy",
    "S3FifoPolicy",
    "TtlPolicy",
    "make_policy",
]

POLICIES: dict[str, Callable[[int], EvictionPolicy]] = {
    "lru": lambda _: LruPolicy(),
    "lfu": lambda _: LfuPolicy(),
    "fifo": lambda _: FifoPolicy(),
    "arc": ArcPolicy,
    "s3fifo": lambda _: S3FifoPolicy(),
    "adaptive": AdaptivePolicy,
}


def make_policy(name: str, num_blocks: int) -> EvictionPolicy:
    """Make the policy of this name for a pool of ``num_blocks``.

    Raises:
        UnknownEviction: there is none; the message lists those there are.
    """
    try:
        return POLICIES[name](num_blocks)
    except KeyError:
        known = ", ".join(POLICIES)
        raise UnknownEviction(f"eviction policy {name!r} is not available; use {known}") from None
