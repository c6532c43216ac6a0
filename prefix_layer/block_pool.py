"""Owns all blocks: who uses them, which are free, which go when there are too few. No tensors.

free ── allocate ──▶ active ── release ──▶ cached (indexed) or free (not indexed)
 ▲                     ▲  ▲                  │
 │                     │  └──── acquire ─────┤
 └────────── evict, forget ──────────────────┘
"""

from collections.abc import Sequence

from prefix_layer.block import Block, BlockState
from prefix_layer.block_events import BlockListener, Departure
from prefix_layer.eviction import EvictionPolicy
from prefix_layer.free_blocks import FreeBlocks
from prefix_layer.prefix_index import PrefixIndex

_ROOM = 16


class BlockPool:
    """``num_blocks`` blocks with reference counts. Eviction is lazy: only to fill an allocation."""

    def __init__(
        self,
        num_blocks: int,
        index: PrefixIndex,
        policy: EvictionPolicy,
        listeners: Sequence[BlockListener] = (),
    ) -> None:
        self.blocks = [Block(i) for i in range(num_blocks)]
        self.index = index
        self.num_evicted = 0
        self._policy = policy
        self._listeners = tuple(listeners)
        self._free = FreeBlocks(num_blocks)
        self._num_cached = 0

    @property
    def num_available(self) -> int:
        """Blocks that nobody uses: free ones and those that can be evicted."""
        return len(self._free) + self._num_cached

    def count_by_state(self) -> dict[BlockState, int]:
        """Count blocks; the counts sum to the pool's size."""
        active = len(self.blocks) - self.num_available
        return {"free": len(self._free), "cached": self._num_cached, "active": active}

    def can_allocate(self, count: int, acquiring: Sequence[Block] = ()) -> bool:
        """Say whether ``count`` blocks could be had after ``acquiring`` these."""
        return self.num_available - sum(not block.ref_count for block in acquiring) >= count

    def acquire(self, blocks: Sequence[Block]) -> None:
        """Let a request use indexed blocks; they can't be evicted until released."""
        for block in blocks:
            block.num_hits += 1
        self.hold(blocks)

    def hold(self, blocks: Sequence[Block]) -> None:
        """Keep indexed blocks as `acquire` does, without counting that a request reused them."""
        for block in blocks:
            assert block.indexed, f"{block} holds nothing to share"
            self._policy.hit(block)
            self._num_cached -= not block.ref_count
            block.ref_count += 1

    def allocate(self, count: int, after: Block | None = None) -> list[Block] | None:
        """Take ``count`` empty blocks, if possible as a run behind ``after``; None if too few.

        Nothing is taken nor evicted when the whole count can't be had.
        """
        if count > self.num_available:
            return None
        while len(self._free) < count:
            self._evict()
        ids = self._free.take(count, None if after is None else after.block_id, _ROOM)
        blocks = [self.blocks[i] for i in ids]
        for block in blocks:
            block.ref_count = 1
        return blocks

    def share(
        self,
        block: Block,
        parent: Block | None,
        salt: bytes,
        own_hash: bytes,
        token_ids: tuple[int, ...],
    ) -> Block | None:
        """Index a computed block; return the block that its user goes on with.

        That is the block itself, or the twin that was computed first (the given one is released),
        or None when it can't be indexed and so stays private. A tail that grew is indexed anew.
        """
        if block.indexed:
            self._policy.remove(block)
            self._tell_removed(block, "replaced")
            self.index.remove(block)
        canonical = self.index.insert(block, parent, salt, own_hash, token_ids)
        if canonical is block:
            self._policy.insert(block)
            for listener in self._listeners:
                listener.stored(block)
            self._drop_shadowed(block)
        elif canonical is not None:
            self.hold([canonical])
            self.release([block])
        return canonical

    def release(self, blocks: Sequence[Block]) -> None:
        """Stop using blocks, the last one first, so that a prefix outlives what continues it."""
        for block in reversed(blocks):
            assert block.ref_count > 0, f"{block} is released too often"
            block.ref_count -= 1
            if block.ref_count:
                continue
            if block.indexed:
                self._num_cached += 1
                self._policy.release(block)
            else:
                self._free.add(block.block_id)

    def drop_expired(self) -> None:
        """Empty the cached blocks that have outlived their time."""
        while (block := self._policy.expired()) is not None:
            self._policy.remove(block)
            self._drop(block, "forgotten")

    def forget_unused(self) -> None:
        """Empty every cached block that nobody uses."""
        while self._num_cached:
            leaves = [b for b in self.index if b.evictable]
            for block in leaves:
                self._policy.remove(block)
                self._drop(block, "forgotten")

    def check_invariants(self, tables: Sequence[Sequence[Block]] = ()) -> None:
        """Assert that every block is in one state and used as often as ``tables`` say."""
        users: dict[Block, int] = {}
        for table in tables:
            assert len(set(table)) == len(table), "a block stands twice in one table"
            for block in table:
                users[block] = users.get(block, 0) + 1
        for block in self.blocks:
            assert block.ref_count == users.get(block, 0), f"{block} is used {users.get(block, 0)}x"
            assert (block.block_id in self._free) == (block.state == "free"), f"{block} mislaid"
            if block.indexed:
                above = -1 if block.parent is None else block.parent.depth
                assert block.depth == above + 1, f"{block} is not {block.depth} deep"
            if block.ref_count and block.parent is not None:
                assert block.parent.ref_count, f"{block} is used without its parent"
        cached = sum(block.state == "cached" for block in self.blocks)
        assert cached == self._num_cached, f"{cached} blocks are cached, not {self._num_cached}"
        assert len(self.index) == sum(block.indexed for block in self.blocks)
        self.index.check_invariants()

    def _drop_shadowed(self, block: Block) -> None:
        tail = self.index.shadowed_by(block)
        if tail is not None and tail.evictable:
            self._policy.remove(tail)
            self._drop(tail, "replaced")

    def _evict(self) -> None:
        self._drop(self._policy.evict(), "evicted")
        self.num_evicted += 1

    def _drop(self, block: Block, why: Departure) -> None:
        self._tell_removed(block, why)
        self.index.remove(block)
        self._num_cached -= 1
        self._free.add(block.block_id)

    def _tell_removed(self, block: Block, why: Departure) -> None:
        for listener in self._listeners:
            listener.removed(block, why)
