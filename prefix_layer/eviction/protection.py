"""The order of kept blocks under a protection time, for the adaptive policy and its shadows."""

from dataclasses import dataclass

from prefix_layer.block import Block, BlockQueue

PASSING, KEPT, PROVEN = 0, 1, 2
SHARED_HITS = 3

_PROVEN_PATIENCE = 2
_POOL_PER_NEWCOMER = 64
_POOL_PER_SCAN = 4


@dataclass(frozen=True, slots=True)
class Protection:
    """How long kept blocks are safe from first-time requests, and how much of one is kept.

    ``min_age`` is in uses of blocks, ``max_run`` in blocks. ``patience`` is how many times longer
    blocks are safe that a request came back to.
    """

    min_age: float
    max_run: float
    patience: int

    @classmethod
    def of(cls, pools: float, num_blocks: int) -> "Protection":
        """Make the protection for a time in multiples of the pool.

        0 makes everything plain LRU, but for what a first-time request has past a quarter of the
        pool: one long scan must not push out all there is before the traffic has been learnt.
        """
        if pools == 0:
            return cls(0, max(2, num_blocks // _POOL_PER_SCAN), 1)
        max_run = max(2, num_blocks // _POOL_PER_NEWCOMER)
        return cls(pools * num_blocks, max_run, _PROVEN_PATIENCE)


class KeptOrder:
    """Least recently used first, in two queues: blocks kept on arrival, and proven ones."""

    def __init__(self) -> None:
        self._queues = {KEPT: BlockQueue(), PROVEN: BlockQueue()}

    @property
    def oldest_kept(self) -> Block | None:
        """The least recently used block that is not proven; None if there is none."""
        return self._queues[KEPT].first

    def append(self, block: Block) -> None:
        """Add as the most recently used of its kind."""
        self._queues[block.level].append(block)

    def insert_below(self, parent: Block | None, block: Block) -> None:
        """Add as just older than its parent if that is of its kind, else as the most recent."""
        queue = self._queues[block.level]
        if parent is not None and parent in queue:
            queue.insert_before(parent, block)
        else:
            queue.append(block)

    def has_room(self, protection: Protection, clock: int) -> bool:
        """Say whether the oldest block is no longer protected; an empty order has room."""
        oldest = self.oldest(protection, clock)
        return oldest is None or _age(oldest, protection, clock) > protection.min_age

    def oldest(self, protection: Protection, clock: int) -> Block | None:
        """Look at the block to go first, proven ones counted as younger by the patience."""
        kept, proven = self._queues[KEPT].first, self._queues[PROVEN].first
        if kept is None or proven is None:
            return proven if kept is None else kept
        ages = [_age(block, protection, clock) for block in (kept, proven)]
        return kept if ages[0] >= ages[1] else proven


def _age(block: Block, protection: Protection, clock: int) -> float:
    return (clock - block.last_use) / (protection.patience if block.level == PROVEN else 1)
