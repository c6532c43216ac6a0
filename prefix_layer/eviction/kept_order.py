"""The order of kept blocks under a protection, for the adaptive policy and its shadows."""

from prefix_layer.block import Block, BlockQueue
from prefix_layer.eviction.protection import KEPT, PROVEN, Protection


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
