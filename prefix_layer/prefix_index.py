"""Finds cached blocks by what they hold. Knows no ref counts, no eviction and no tensors.

One structure with two faces: hash → block, and a tree whose paths are the cached prefixes, with the
children of each block in the order of their tokens. A hash alone is never trusted: tokens, parent
and salt are compared as well, so a collision can only be a miss. Salts see each other's blocks only
as far as these lead from the root as a public prefix.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prefix_layer.block import Block
from prefix_layer.hashing import PUBLIC_SALT, as_words, block_hash, private_root, root_hash
from prefix_layer.siblings import PartialBlock, Siblings

HashBlock = Callable[[bytes, Sequence[int]], bytes]


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """What is cached of a prompt: whole ``blocks``, then the beginning of one more.

    ``num_tokens`` counts both.
    """

    blocks: list[Block]
    partial: PartialBlock | None
    num_tokens: int


class PrefixIndex:
    """The tree of cached blocks of one model."""

    def __init__(
        self, block_size: int, model_fingerprint: str, hash_block: HashBlock = block_hash
    ) -> None:
        self.block_size = block_size
        self._model_fingerprint = model_fingerprint
        self._hash_block = hash_block
        self._by_hash: dict[bytes, Block] = {}
        self._siblings = Siblings()
        self._public: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._by_hash)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._by_hash.values())

    def extend_hashes(self, hashes: list[bytes], salt: bytes, token_ids: Sequence[int]) -> None:
        """Append to ``hashes`` what is missing for all full blocks of ``token_ids``."""
        size = self.block_size
        first, last = len(hashes) * size, len(token_ids) // size * size
        if first < last:
            words = as_words(token_ids[first:last])
            for start in range(0, len(words), size):
                hashes.append(self.hash_next(hashes, salt, words[start : start + size]))

    def hash_next(self, hashes: Sequence[bytes], salt: bytes, token_ids: Sequence[int]) -> bytes:
        """Hash the tokens of a block that follows those with ``hashes``."""
        parent_hash = hashes[-1] if hashes else None
        if self._public and (parent_hash is None or parent_hash in self._public):
            return self._hash_behind_public(parent_hash, salt, token_ids)
        if parent_hash is None:
            parent_hash = root_hash(self._model_fingerprint, salt)
        return self._hash_block(parent_hash, token_ids)

    def publish(self, token_ids: Sequence[int]) -> None:
        """Let all salts share the blocks of this prefix that are computed from now on."""
        parent_hash = root_hash(self._model_fingerprint, PUBLIC_SALT)
        size = self.block_size
        for start in range(0, len(token_ids) // size * size, size):
            parent_hash = self._hash_block(parent_hash, token_ids[start : start + size])
            self._public.add(parent_hash)

    def salt_of(self, own_hash: bytes, salt: bytes) -> bytes:
        """Return the salt that a block of this hash is filed under, in a chain of ``salt``."""
        return PUBLIC_SALT if own_hash in self._public else salt

    def match(
        self, hashes: Sequence[bytes], salt: bytes, token_ids: Sequence[int], max_tokens: int
    ) -> PrefixMatch:
        """Walk down the tree as far as blocks hold exactly these tokens, at most ``max_tokens``.

        Behind the last whole block comes the child of it that holds most of the next tokens.
        """
        blocks = self._match_whole(hashes, salt, token_ids, max_tokens)
        start = len(blocks) * self.block_size
        following = token_ids[start : min(start + self.block_size, max_tokens)]
        partial = self.nearest(blocks[-1] if blocks else None, salt, following)
        return PrefixMatch(blocks, partial, start + (partial.num_tokens if partial else 0))

    def nearest(
        self, parent: Block | None, salt: bytes, token_ids: Sequence[int]
    ) -> PartialBlock | None:
        """Find the child of ``parent`` that shares most leading tokens; None when none does."""
        own = self._siblings.nearest(parent, salt, token_ids)
        if not self._public or not (parent is None or parent.salt == PUBLIC_SALT):
            return own
        public = self._siblings.nearest(parent, PUBLIC_SALT, token_ids)
        if own is None or public is None:
            return own or public
        return own if own.num_tokens >= public.num_tokens else public

    def children(self) -> dict[Block | None, list[Block]]:
        """List the cached blocks behind each block that has any; None has the first blocks."""
        found: dict[Block | None, list[Block]] = {}
        for block in self:
            found.setdefault(block.parent, []).append(block)
        return found

    def shadowed_by(self, block: Block) -> Block | None:
        """Give the tail that ``block`` holds all tokens of, if it stands next to it."""
        shorter = self._siblings.before(block)
        if shorter is None or block.token_ids[: len(shorter.token_ids)] != shorter.token_ids:
            return None
        return shorter

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
        assert 0 < len(token_ids) <= self.block_size, f"{block} can't hold {len(token_ids)} tokens"
        assert parent is None or self._may_have_children(parent), f"{block} can't follow {parent}"
        known = self._by_hash.get(own_hash)
        if known is not None:
            return known if self._holds(known, parent, salt, token_ids) else None
        block.block_hash, block.parent = own_hash, parent
        block.depth = 0 if parent is None else parent.depth + 1
        block.salt, block.token_ids = salt, token_ids
        block.num_hits = 0
        if parent is not None:
            parent.num_children += 1
        self._by_hash[own_hash] = block
        self._siblings.add(block)
        return block

    def remove(self, block: Block) -> None:
        """Take a block out; its children must be gone already."""
        assert block.block_hash is not None, f"{block} is not indexed"
        assert block.num_children == 0, f"{block} has children in the index"
        del self._by_hash[block.block_hash]
        self._siblings.remove(block)
        if block.parent is not None:
            block.parent.num_children -= 1
        block.block_hash = block.parent = None
        block.salt, block.token_ids, block.stored = b"", (), False

    def check_invariants(self) -> None:
        """Assert that the tree is whole: every parent indexed, every child counted."""
        children: dict[Block, int] = {}
        for own_hash, block in self._by_hash.items():
            assert block.block_hash == own_hash, f"{block} is filed under another hash"
            nearest = self.nearest(block.parent, block.salt, block.token_ids)
            assert nearest == PartialBlock(block, len(block.token_ids)), f"{block} is mislaid"
            if block.parent is not None:
                assert self._may_have_children(block.parent), f"{block} can't follow its parent"
                children[block.parent] = children.get(block.parent, 0) + 1
        for block in self:
            assert block.num_children == children.get(block, 0), f"{block} miscounts its children"
        assert len(self._siblings) == len(self), "the tree holds other blocks than the index"

    def _match_whole(
        self, hashes: Sequence[bytes], salt: bytes, token_ids: Sequence[int], max_tokens: int
    ) -> list[Block]:
        matched: list[Block] = []
        parent: Block | None = None
        for i in range(min(len(hashes), max_tokens // self.block_size)):
            block = self._by_hash.get(hashes[i])
            if block is None:
                break
            filed = self.salt_of(hashes[i], salt)
            if not self._holds(block, parent, filed, self._tokens(token_ids, i)):
                break
            matched.append(block)
            parent = block
        return matched

    def _hash_behind_public(
        self, parent_hash: bytes | None, salt: bytes, token_ids: Sequence[int]
    ) -> bytes:
        root = parent_hash or root_hash(self._model_fingerprint, PUBLIC_SALT)
        own_hash = self._hash_block(root, token_ids)
        if salt == PUBLIC_SALT or own_hash in self._public:
            return own_hash
        if parent_hash is None:
            return self._hash_block(root_hash(self._model_fingerprint, salt), token_ids)
        return self._hash_block(private_root(parent_hash, salt), token_ids)

    def _may_have_children(self, block: Block) -> bool:
        return block.indexed and len(block.token_ids) == self.block_size

    def _tokens(self, token_ids: Sequence[int], i: int) -> tuple[int, ...]:
        return tuple(token_ids[i * self.block_size : (i + 1) * self.block_size])

    @staticmethod
    def _holds(block: Block, parent: Block | None, salt: bytes, tokens: tuple[int, ...]) -> bool:
        return block.token_ids == tokens and block.parent is parent and block.salt == salt
