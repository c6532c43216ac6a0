"""Orders the cached blocks under one parent by their tokens. Knows no hashes and no ref counts.

In lexicographic order the block that shares the longest run of leading tokens with a query stands
next to the query's own place, so two comparisons find it among any number of siblings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prefix_layer.block import Block
from prefix_layer.sorted_blocks import SortedBlocks

_Group = tuple[Block | None, bytes, int]


@dataclass(frozen=True, slots=True)
class PartialBlock:
    """A cached block whose first ``num_tokens`` tokens are the ones looked for."""

    block: Block
    num_tokens: int


class Siblings:
    """All indexed blocks, grouped by parent, salt and first token."""

    def __init__(self) -> None:
        self._groups: dict[_Group, SortedBlocks] = {}

    def __len__(self) -> int:
        return sum(len(group) for group in self._groups.values())

    def add(self, block: Block) -> None:
        """Put an indexed block in its place."""
        self._groups.setdefault(_group_of(block), SortedBlocks()).add(block)

    def remove(self, block: Block) -> None:
        """Take a block out that is still indexed."""
        key = _group_of(block)
        group = self._groups[key]
        group.remove(block)
        if not group:
            del self._groups[key]

    def nearest(
        self, parent: Block | None, salt: bytes, token_ids: Sequence[int]
    ) -> PartialBlock | None:
        """Find the block under ``parent`` that shares most leading tokens; None when none does."""
        if not token_ids:
            return None
        group = self._groups.get((parent, salt, token_ids[0]))
        if group is None:
            return None
        neighbours = [block for block in group.around(tuple(token_ids)) if block is not None]
        shared = [PartialBlock(b, _num_common(b.token_ids, token_ids)) for b in neighbours]
        return max(shared, key=lambda partial: partial.num_tokens)

    def before(self, block: Block) -> Block | None:
        """Give the sibling that stands right before; one that the block continues stands there."""
        return self._groups[_group_of(block)].around(block.token_ids)[0]


def _group_of(block: Block) -> _Group:
    return block.parent, block.salt, block.token_ids[0]


def _num_common(a: Sequence[int], b: Sequence[int]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
