"""Adaptive replacement cache."""

from prefix_layer.block import Block, BlockQueue
from prefix_layer.eviction.base import EvictionPolicy
from prefix_layer.eviction.ghosts import Ghosts

_ONCE, _AGAIN = 0, 1


class ArcPolicy(EvictionPolicy):
    """Divide the pool between blocks used once and used again, by which of them it misses.

    Two LRU queues of unused blocks, T1 (used once) and T2 (used again), remember what they evicted
    in B1 and B2. ``target`` is T1's part, in blocks. A block is in T2 only with its parent, so
    remembered blocks join T2 from the root down; when T2's oldest has children in T1, T1's oldest
    goes in its place.

    Source: Megiddo and Modha, ARC: a self-tuning, low overhead replacement cache, FAST 2003.
    """

    def __init__(self, num_blocks: int) -> None:
        self._num_blocks = num_blocks
        self._target = 0.0
        self._queues = {_ONCE: BlockQueue(), _AGAIN: BlockQueue()}
        self._ghosts = {_ONCE: Ghosts(), _AGAIN: Ghosts()}

    def insert(self, block: Block) -> None:
        """Shift the division towards the queue that let go of this block too early."""
        assert block.block_hash is not None
        remembered = self._learn(block.block_hash)
        below_again = block.parent is None or block.parent.frequency == _AGAIN
        block.frequency = _AGAIN if remembered and below_again else _ONCE

    def hit(self, block: Block) -> None:
        """Take the block out of the order; it comes back as used again."""
        self.remove(block)
        block.frequency = _AGAIN

    def release(self, block: Block) -> None:
        """Queue as the most recently used of its kind."""
        self._queues[block.frequency].append(block)

    def remove(self, block: Block) -> None:
        """Forget the block."""
        if block.queue is not None:
            block.queue.remove(block)

    def evict(self) -> Block:
        """Give the least recently used of the queue that has more than its part."""
        once, again = self._queues[_ONCE].first, self._queues[_AGAIN].first
        over = len(self._queues[_ONCE]) > self._target
        victim = once if once is not None and (over or again is None) else again
        if victim is not None and not victim.evictable:
            victim = once
        assert victim is not None, "nothing is evictable"
        assert victim.evictable, f"{victim} heads the order but can't go"
        self.remove(victim)
        self._remember(victim)
        return victim

    def _learn(self, block_hash: bytes) -> bool:
        once, again = len(self._ghosts[_ONCE]), len(self._ghosts[_AGAIN])
        if self._ghosts[_ONCE].discard(block_hash):
            self._target = min(self._target + max(1.0, again / once), self._num_blocks)
            return True
        if self._ghosts[_AGAIN].discard(block_hash):
            self._target = max(self._target - max(1.0, once / again), 0.0)
            return True
        return False

    def _remember(self, block: Block) -> None:
        assert block.block_hash is not None
        limit = max(1, self._num_blocks - len(self._queues[block.frequency]))
        self._ghosts[block.frequency].add(block.block_hash, limit)
