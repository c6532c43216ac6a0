"""What the pool asks of an eviction policy. Pure: no tensors, no clock, no threads."""

from typing import Protocol

from prefix_layer.block import Block


class EvictionPolicy(Protocol):
    """The order in which cached blocks leave the pool; every operation is O(1), amortised.

    A policy sees each indexed block's life: `insert` once, `hit` for each request that matched it,
    `release` when its last user lets go, `remove` when it leaves without being evicted. A block
    that is in use, or that cached blocks descend from, is never given by `evict`.

    Who uses a block uses its parent too, and lets go of the parent later: a child's release is the
    older one. A request may hit a block twice, once to copy from it and once for what it computed.
    """

    def insert(self, block: Block) -> None:
        """Take note of a block that has just been indexed below its parent; it is in use."""
        ...

    def hit(self, block: Block) -> None:
        """Take note that a request matched the block and is about to use it; parents come first."""
        ...

    def release(self, block: Block) -> None:
        """Take note that nobody uses the block any more; chains come tail first."""
        ...

    def remove(self, block: Block) -> None:
        """Forget an evictable block that leaves the index for another reason."""
        ...

    def evict(self) -> Block:
        """Choose the next victim and forget it; at least one block must be evictable."""
        ...

    def expired(self) -> Block | None:
        """Name an evictable block that has outlived its time; None when there is none."""
        return None
