"""First in, first out."""

from prefix_layer.block import Block, BlockQueue
from prefix_layer.eviction.base import EvictionPolicy


class FifoPolicy(EvictionPolicy):
    """Evict the leaf computed first; its parent, which is older still, is next.

    Only leaves are queued. One in use when its turn comes leaves the queue, and is the newest when
    its last user lets go.
    """

    def __init__(self) -> None:
        self._leaves = BlockQueue()

    def insert(self, block: Block) -> None:
        """Queue as the newest, in place of its parent."""
        parent = block.parent
        if parent is not None and parent in self._leaves:
            self._leaves.remove(parent)
        self._leaves.append(block)

    def hit(self, block: Block) -> None:
        """Ignore use."""

    def release(self, block: Block) -> None:
        """Queue a leaf that is not queued."""
        if block.evictable and block not in self._leaves:
            self._leaves.append(block)

    def remove(self, block: Block) -> None:
        """Forget the block; its parent may be a leaf now."""
        if block in self._leaves:
            self._leaves.remove(block)
        parent = block.parent
        if parent is not None and parent.num_children == 1 and parent not in self._leaves:
            self._leaves.appendleft(parent)

    def evict(self) -> Block:
        """Give the oldest leaf that nobody uses."""
        while (block := self._leaves.popleft()) is not None:
            if block.evictable:
                self.remove(block)
                return block
        raise AssertionError("nothing is evictable")
