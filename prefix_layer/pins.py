"""Prefixes that an operator wants kept whatever the traffic is. Knows no tensors."""

from collections import Counter
from collections.abc import Mapping, Sequence

from prefix_layer.block import Block
from prefix_layer.block_pool import BlockPool

MAX_SHARE = 0.5  # of the pool; the rest is for the traffic


class Pins:
    """Uses the blocks of pinned prefixes, so that no policy evicts them.

    A prefix is known by its last block. ``counts`` says how many prefixes pin each block.
    """

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool
        self._tables: dict[Block, list[Block]] = {}
        self._counts: Counter[Block] = Counter()

    @property
    def counts(self) -> Mapping[Block, int]:
        """How many pinned prefixes each pinned block belongs to."""
        return self._counts

    @property
    def tables(self) -> list[list[Block]]:
        """The blocks of each pinned prefix, first to last."""
        return list(self._tables.values())

    def room_for(self, table: Sequence[Block]) -> bool:
        """Say whether these blocks may be pinned too."""
        more = sum(block not in self._counts for block in table)
        return len(self._counts) + more <= MAX_SHARE * len(self._pool.blocks)

    def pin(self, table: Sequence[Block]) -> None:
        """Keep the cached blocks of one prefix; pinning it again changes nothing."""
        if table and table[-1] not in self._tables:
            self._pool.hold(table)
            self._tables[table[-1]] = list(table)
            self._counts.update(table)

    def unpin(self, table: Sequence[Block]) -> None:
        """Keep a prefix no longer, nor those that it begins with; unknown ones are ignored."""
        for block in table:
            self._drop(block)

    def unpin_all(self) -> None:
        """Keep nothing."""
        for block in list(self._tables):
            self._drop(block)

    def _drop(self, last: Block) -> None:
        table = self._tables.pop(last, None)
        if table is None:
            return
        self._pool.release(table)
        for block in table:
            self._counts[block] -= 1
            if not self._counts[block]:
                del self._counts[block]
