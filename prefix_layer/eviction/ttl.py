"""Lets go of what nobody has used for a while, full pool or not."""

from collections import OrderedDict
from collections.abc import Callable

from prefix_layer.block import Block
from prefix_layer.eviction.base import EvictionPolicy


class TtlPolicy(EvictionPolicy):
    """Any policy, with a time to live on top: ``ttl_s`` seconds since the last use.

    ``now_s`` gives a clock's seconds. Blocks in use don't age. Who uses a block uses its parent
    and lets go of it later, so the block that expires first has no children.
    """

    def __init__(self, inner: EvictionPolicy, ttl_s: float, now_s: Callable[[], float]) -> None:
        self._inner = inner
        self._ttl_s = ttl_s
        self._now_s = now_s
        self._released_s: OrderedDict[Block, float] = OrderedDict()

    def insert(self, block: Block) -> None:
        """Let the inner policy take note."""
        self._inner.insert(block)

    def hit(self, block: Block) -> None:
        """Stop the block's time."""
        self._released_s.pop(block, None)
        self._inner.hit(block)

    def release(self, block: Block) -> None:
        """Start the block's time."""
        self._released_s[block] = self._now_s()
        self._inner.release(block)

    def remove(self, block: Block) -> None:
        """Forget the block."""
        self._released_s.pop(block, None)
        self._inner.remove(block)

    def evict(self) -> Block:
        """Let the inner policy choose."""
        victim = self._inner.evict()
        self._released_s.pop(victim, None)
        return victim

    def expired(self) -> Block | None:
        """Give the block unused for longest if that is longer than it may live."""
        block = next(iter(self._released_s), None)
        if block is None or self._now_s() - self._released_s[block] < self._ttl_s:
            return None
        return block
