"""Least frequently used."""

from prefix_layer.block import Block, BlockQueue
from prefix_layer.eviction.base import EvictionPolicy

_MAX_FREQUENCY = 63


class LfuPolicy(EvictionPolicy):
    """Evict the block with the fewest hits, and of those the one released longest ago.

    One queue of unused blocks per number of hits, counted up to 63 and never beyond the parent's:
    so a child, whose release is the older one, stands before its parent.
    """

    def __init__(self) -> None:
        self._queues = [BlockQueue() for _ in range(_MAX_FREQUENCY + 1)]

    def insert(self, block: Block) -> None:
        """Start counting."""
        block.frequency = 0

    def hit(self, block: Block) -> None:
        """Count the use, and take the block out of the order."""
        self.remove(block)
        limit = _MAX_FREQUENCY if block.parent is None else block.parent.frequency
        block.frequency = min(block.frequency + 1, limit)

    def release(self, block: Block) -> None:
        """Queue among blocks with as many hits."""
        self._queues[block.frequency].append(block)

    def remove(self, block: Block) -> None:
        """Forget the block."""
        if block.queue is not None:
            block.queue.remove(block)

    def evict(self) -> Block:
        """Give the oldest of the least used."""
        for queue in self._queues:
            victim = queue.popleft()
            if victim is not None:
                assert victim.evictable, f"{victim} heads the order but can't go"
                return victim
        raise AssertionError("nothing is evictable")
