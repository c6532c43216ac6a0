"""First in, first out."""

from prefix_layer.block import Block, BlockQueue


class FifoPolicy:
    """Evict the leaf computed first; its parent, which is older still, is next.

    Only leaves are queued, used or not; one in use when its turn comes queues anew.
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
        """Ignore use."""

    def remove(self, block: Block) -> None:
        """Forget the block; its parent may be a leaf now."""
        self._leaves.remove(block)
        parent = block.parent
        if parent is not None and parent.num_children == 1:
            self._leaves.appendleft(parent)

    def evict(self) -> Block:
        """Give the oldest leaf that nobody uses."""
        for _ in range(len(self._leaves)):
            block = self._leaves.first
            assert block is not None
            if block.evictable:
                self.remove(block)
                return block
            self._leaves.remove(block)
            self._leaves.append(block)
        raise AssertionError("nothing is evictable")
