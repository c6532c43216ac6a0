"""One block of KV slots and an intrusive queue of blocks. Pure bookkeeping, no tensors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

BlockState = Literal["free", "cached", "active"]


class Block:
    """The state of ``block_size`` KV slots; made once with the pool, then only changed.

    ``free`` holds nothing, ``cached`` is indexed and unused, ``active`` has ``ref_count`` users.
    An indexed block knows its place in the tree: ``parent`` (None for a first block), ``depth``
    (blocks above it), ``num_children``, ``num_hits`` (requests that reused it) and the
    ``token_ids`` whose KV it holds; fewer than the block has room for in the tail of a sequence,
    which has no children.
    ``prev``, ``next`` and ``queue`` belong to `BlockQueue`; ``frequency``, ``last_use``, ``level``,
    ``run_length`` and ``sampled`` to the eviction policy,
    ``stored`` (a tier was given its KV) to the tiers.
    """

    __slots__ = (
        "block_hash",
        "block_id",
        "depth",
        "frequency",
        "last_use",
        "level",
        "next",
        "num_children",
        "num_hits",
        "parent",
        "prev",
        "queue",
        "ref_count",
        "run_length",
        "salt",
        "sampled",
        "stored",
        "token_ids",
    )

    def __init__(self, block_id: int) -> None:
        self.block_id = block_id
        self.ref_count = 0
        self.block_hash: bytes | None = None
        self.parent: Block | None = None
        self.salt = b""
        self.token_ids: tuple[int, ...] = ()
        self.depth = 0
        self.num_children = 0
        self.num_hits = 0
        self.frequency = 0
        self.last_use = 0
        self.level = 0
        self.run_length = 0
        self.sampled = False
        self.stored = False
        self.prev: Block | None = None
        self.next: Block | None = None
        self.queue: BlockQueue | None = None

    def __repr__(self) -> str:
        return f"Block({self.block_id}, {self.state}, refs={self.ref_count})"

    @property
    def indexed(self) -> bool:
        """Say whether the block can be found by its tokens."""
        return self.block_hash is not None

    @property
    def state(self) -> BlockState:
        """Derive the state from users and index."""
        if self.ref_count:
            return "active"
        return "cached" if self.indexed else "free"

    @property
    def evictable(self) -> bool:
        """Say whether nobody uses the block and no cached block descends from it."""
        return self.ref_count == 0 and self.num_children == 0


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """KV of the first ``num_tokens`` tokens of ``source``, to be put in ``target`` as well."""

    source: Block
    target: Block
    num_tokens: int


class BlockQueue:
    """Doubly linked through the blocks themselves: every operation is O(1). Oldest first.

    A block is in one queue at most.
    """

    def __init__(self) -> None:
        self._head: Block | None = None
        self._tail: Block | None = None
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, block: Block) -> bool:
        return block.queue is self

    def __iter__(self) -> Iterator[Block]:
        block = self._head
        while block is not None:
            yield block
            block = block.next

    @property
    def first(self) -> Block | None:
        """The oldest; None when empty."""
        return self._head

    def append(self, block: Block) -> None:
        """Add as the newest."""
        assert block.queue is None, f"{block} is queued already"
        block.queue = self
        block.prev, block.next = self._tail, None
        if self._tail is None:
            self._head = block
        else:
            self._tail.next = block
        self._tail = block
        self._length += 1

    def insert_before(self, other: Block, block: Block) -> None:
        """Add as just older than another."""
        assert block.queue is None, f"{block} is queued already"
        assert other.queue is self, f"{other} is not in this queue"
        block.queue = self
        block.prev, block.next = other.prev, other
        if other.prev is None:
            self._head = block
        else:
            other.prev.next = block
        other.prev = block
        self._length += 1

    def appendleft(self, block: Block) -> None:
        """Add as the oldest."""
        if self._head is None:
            self.append(block)
        else:
            self.insert_before(self._head, block)

    def remove(self, block: Block) -> None:
        """Take out from wherever it stands."""
        assert block.queue is self, f"{block} is not in this queue"
        before, after = block.prev, block.next
        if before is None:
            self._head = after
        else:
            before.next = after
        if after is None:
            self._tail = before
        else:
            after.prev = before
        block.prev = block.next = block.queue = None
        self._length -= 1

    def popleft(self) -> Block | None:
        """Take out the oldest; None when empty."""
        block = self._head
        if block is not None:
            self.remove(block)
        return block
