"""Least recently used."""

from prefix_layer.block import Block, BlockQueue
from prefix_layer.eviction.base import EvictionPolicy


class LruPolicy(EvictionPolicy):
    """Evict the block whose last use is longest ago.

    Only unused blocks are queued. As chains are released tail first and users of a block use its
    parents too, a child always stands before its parent.
    """

    def __init__(self) -> None:
        self._queue = BlockQueue()

    def insert(self, block: Block) -> None:
        """Leave the block out until it is released."""

    def hit(self, block: Block) -> None:
        """Take the block out of the order: it is in use from now on."""
        self.remove(block)

    def release(self, block: Block) -> None:
        """Queue as most recently used."""
        self._queue.append(block)

    def remove(self, block: Block) -> None:
        """Forget the block."""
        if block in self._queue:
            self._queue.remove(block)

    def evict(self) -> Block:
        """Give the least recently used block."""
        victim = self._queue.popleft()
        assert victim is not None, "nothing is evictable"
        assert victim.evictable, f"{victim} heads the order but can't go"
        return victim
