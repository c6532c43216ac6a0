"""Finds cached blocks by what they hold. Knows no ref counts, no eviction and no tensors.

One structure with two faces: hash → block, and through `Block.parent` a tree whose paths are the
cached prefixes. A hash alone is never trusted: tokens, parent and salt are compared as well, so a
collision can only be a miss.
"""

from collections.abc import Callable, Iterator, Sequence

from prefix_layer.block import Block
from prefix_layer.hashing import block_hash, root_hash

HashBlock = Callable[[bytes, Sequence[int]], bytes]


class PrefixIndex:
    """The tree of cached blocks of one model."""

    def __init__(
        self, block_size: int, model_fingerprint: str, hash_block: HashBlock = block_hash
    ) -> None:
        self.block_size = block_size
        self._model_fingerprint = model_fingerprint
        self._hash_block = hash_block
        self._by_hash: dict[bytes, Block] = {}

    def __len__(self) -> int:
        return len(self._by_hash)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._by_hash.values())

    def extend_hashes(self, hashes: list[bytes], salt: bytes, token_ids: Sequence[int]) -> None:
        """Append to ``hashes`` what is missing for all full blocks of ``token_ids``."""
        size = self.block_size
        parent_hash = hashes[-1] if hashes else root_hash(self._model_fingerprint, salt)
        for start in range(len(hashes) * size, len(token_ids) // size * size, size):
            parent_hash = self._hash_block(parent_hash, token_ids[start : start + size])
            hashes.append(parent_hash)

    def match(
        self, hashes: Sequence[bytes], salt: bytes, token_ids: Sequence[int], max_tokens: int
    ) -> list[Block]:
        """Walk down the tree as far as blocks hold exactly these tokens, at most ``max_tokens``."""
        matched: list[Block] = []
        parent: Block | None = None
        for i in range(min(len(hashes), max_tokens // self.block_size)):
            block = self._by_hash.get(hashes[i])
            if block is None or not self._holds(block, parent, salt, self._tokens(token_ids, i)):
                break
            matched.append(block)
            parent = block
        return matched

    def insert(
        self,
        block: Block,
        parent: Block | None,
        salt: bytes,
        own_hash: bytes,
        token_ids: tuple[int, ...],
    ) -> Block | None:
        """Index a computed block; return the block that stands for this prefix from now on.

        That is another block when the same prefix is indexed already, and None when the hash
        belongs to a different prefix: then this one can't be indexed.
        """
        assert not block.indexed, f"{block} is indexed already"
        assert parent is None or parent.indexed, f"parent of {block} is not indexed"
        known = self._by_hash.get(own_hash)
        if known is not None:
            return known if self._holds(known, parent, salt, token_ids) else None
        block.block_hash, block.parent = own_hash, parent
        block.salt, block.token_ids = salt, token_ids
        if parent is not None:
            parent.num_children += 1
        self._by_hash[own_hash] = block
        return block

    def remove(self, block: Block) -> None:
        """Take a block out; its children must be gone already."""
        assert block.block_hash is not None, f"{block} is not indexed"
        assert block.num_children == 0, f"{block} has children in the index"
        del self._by_hash[block.block_hash]
        if block.parent is not None:
            block.parent.num_children -= 1
        block.block_hash = block.parent = None
        block.salt, block.token_ids = b"", ()

    def check_invariants(self) -> None:
        """Assert that the tree is whole: every parent indexed, every child counted."""
        children: dict[Block, int] = {}
        for own_hash, block in self._by_hash.items():
            assert block.block_hash == own_hash, f"{block} is filed under another hash"
            assert len(block.token_ids) == self.block_size, f"{block} is not full"
            if block.parent is not None:
                assert block.parent.indexed, f"{block} outlived its parent"
                children[block.parent] = children.get(block.parent, 0) + 1
        for block in self:
            assert block.num_children == children.get(block, 0), f"{block} miscounts its children"

    def _tokens(self, token_ids: Sequence[int], i: int) -> tuple[int, ...]:
        return tuple(token_ids[i * self.block_size : (i + 1) * self.block_size])

    @staticmethod
    def _holds(block: Block, parent: Block | None, salt: bytes, tokens: tuple[int, ...]) -> bool:
        return block.token_ids == tokens and block.parent is parent and block.salt == salt
