"""What a block is called and what it holds, the same in every tier, process and machine. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from prefix_layer.block import Block


@dataclass(frozen=True, slots=True)
class BlockKey:
    """A full block. ``own_hash`` chains over ``parent_hash``, empty for a first block.

    ``depth`` is the number of blocks above it; it orders recency, it is not part of the name.
    """

    own_hash: bytes
    parent_hash: bytes
    token_ids: tuple[int, ...]
    depth: int = 0

    def holds_same(self, other: "BlockKey") -> bool:
        """Say whether the other block, found by its hash, really is this one."""
        return self.token_ids == other.token_ids and self.parent_hash == other.parent_hash


class BlockLayout(msgspec.Struct, frozen=True):
    """What a block's bytes depend on beside its tokens. ``shapes``: heads, key and value width."""

    version: int
    model: str
    dtype: str
    codec: str
    block_size: int
    shapes: list[tuple[int, int, int]]


def key_of(block: Block) -> BlockKey:
    """Name an indexed block of the pool."""
    assert block.block_hash is not None, f"{block} is not indexed"
    parent_hash = b"" if block.parent is None else block.parent.block_hash or b""
    return BlockKey(block.block_hash, parent_hash, block.token_ids, block.depth)


def keys_of(
    hashes: Sequence[bytes], token_ids: Sequence[int], block_size: int, first: int, last: int
) -> list[BlockKey]:
    """Name the blocks ``first`` to ``last`` (excluded) of a sequence."""
    return [
        BlockKey(
            hashes[i],
            hashes[i - 1] if i else b"",
            tuple(token_ids[i * block_size : (i + 1) * block_size]),
            i,
        )
        for i in range(first, last)
    ]
