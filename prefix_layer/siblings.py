"""Orders the cached blocks under one parent by their tokens. Knows no hashes and no ref counts.

In lexicographic order the block that shares the longest run of leading tokens with a query stands
next to the query's own place, so two comparisons find it among any number of siblings.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from prefix_layer.block import Block

_Group = tuple[Block | None, bytes, int]


@dataclass(frozen=True, slots=True)
class PartialBlock:
    """A cached block whose first ``num_tokens`` tokens are the ones looked for."""

    block: Block
    num_tokens: int


class Siblings:
    """All indexed blocks, grouped by parent, salt and first token."""

    def __init__(self) -> None:
        self._groups: dict[_Group, list[Block]] = {}

    def __len__(self) -> int:
        return sum(len(group) for group in self._groups.values())

    def add(self, block: Block) -> None:
        """Put an indexed block in its place."""
        group = self._groups.setdefault(_group_of(block), [])
        group.insert(_place(group, block.token_ids), block)

    def remove(self, block: Block) -> None:
        """Take a block out that is still indexed."""
        key = _group_of(block)
        group = self._groups[key]
        place = _place(group, block.token_ids)
        assert group[place] is block, f"{block} is out of order"
        del group[place]
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
        place = _place(group, tuple(token_ids))
        neighbours = group[max(place - 1, 0) : place + 1]
        shared = [PartialBlock(b, _num_common(b.token_ids, token_ids)) for b in neighbours]
        return max(shared, key=lambda partial: partial.num_tokens)

    def before(self, block: Block) -> Block | None:
        """Give the sibling that stands right before; one that the block continues stands there."""
        group = self._groups[_group_of(block)]
        place = _place(group, block.token_ids)
        return group[place - 1] if place else None


def _group_of(block: Block) -> _Group:
    return block.parent, block.salt, block.token_ids[0]


def _place(group: list[Block], token_ids: tuple[int, ...]) -> int:
    return bisect_left(group, token_ids, key=lambda block: block.token_ids)


def _num_common(a: Sequence[int], b: Sequence[int]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
