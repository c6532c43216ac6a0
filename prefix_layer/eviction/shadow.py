"""How a protection would do on a sample of the traffic. Its entries are no blocks of the pool."""

from prefix_layer.block import Block
from prefix_layer.eviction.kept_order import KeptOrder
from prefix_layer.eviction.protection import (
    KEPT,
    PROVEN,
    SHARED_HITS,
    Protection,
)


class Shadow:
    """A cache of ``capacity`` block names under one protection.

    Uses are counted by the caller's ``clock``, over all traffic and not only the sampled part. An
    entry stands just before its parent, as if the chain had been released tail first. What would
    only pass is not held at all. ``num_runs`` counts the requests
    that hit something not widely shared.
    """

    def __init__(self, capacity: int, protection: Protection) -> None:
        self.num_hits = 0.0
        self.num_runs = 0.0
        self.protection = protection
        self._capacity = capacity
        self._entries: dict[bytes, Block] = {}
        self._order = KeptOrder()

    @property
    def is_full(self) -> bool:
        """Say whether the shadow holds as much as it can."""
        return len(self._entries) >= self._capacity

    def use(self, block: Block, *, newcomer: bool, clock: int) -> None:
        """Let a request use a block; ``newcomer`` if only shared blocks come before it."""
        assert block.block_hash is not None
        parent = None if block.parent is None else self._entry_of(block.parent)
        entry = self._entry_of(block)
        if entry is not None:
            self._hit(entry)
            self.num_runs += newcomer and block.frequency < SHARED_HITS
        else:
            entry = self._admit(block.block_hash, None if newcomer else parent, newcomer, clock)
        if entry is not None:
            entry.last_use = clock
            self._order.insert_below(parent, entry)

    def age(self, share: float) -> None:
        """Let what was counted so far count only by ``share``."""
        self.num_hits *= share
        self.num_runs *= share

    def _entry_of(self, block: Block) -> Block | None:
        assert block.block_hash is not None
        return self._entries.get(block.block_hash)

    def _hit(self, entry: Block) -> None:
        self.num_hits += 1
        assert entry.queue is not None
        entry.queue.remove(entry)
        entry.level = PROVEN

    def _admit(
        self, block_hash: bytes, parent: Block | None, newcomer: bool, clock: int
    ) -> Block | None:
        level, run_length = KEPT, 1
        if newcomer:
            if self.is_full and not self._order.has_room(self.protection, clock):
                return None
        elif parent is None:
            return None
        elif parent.level == PROVEN:
            level = PROVEN
        else:
            run_length = parent.run_length + 1
            if run_length > self.protection.max_run:
                return None
        entry = self._make_room(clock) if self.is_full else Block(-1)
        entry.level, entry.run_length, entry.block_hash = level, run_length, block_hash
        self._entries[block_hash] = entry
        return entry

    def _make_room(self, clock: int) -> Block:
        entry = self._order.oldest(self.protection, clock)
        assert entry is not None
        assert entry.queue is not None
        assert entry.block_hash is not None
        entry.queue.remove(entry)
        del self._entries[entry.block_hash]
        return entry
