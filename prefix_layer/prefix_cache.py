"""Gives sequences their blocks: matched ones first, empty ones for the rest. Knows no tensors."""

from collections.abc import Sequence as Seq

from prefix_layer.block import Block
from prefix_layer.block_pool import BlockPool
from prefix_layer.sequence import Sequence


class PrefixCache:
    """The block tables of all sequences over one pool. ``enabled`` off: nothing is ever shared."""

    def __init__(self, pool: BlockPool, *, enabled: bool) -> None:
        self._pool = pool
        self._enabled = enabled
        self._block_size = pool.index.block_size

    def match(self, sequence: Sequence) -> list[Block]:
        """Find the cached blocks that the sequence can start from.

        At least one token is always left to compute: its logits give the next one.
        """
        if not self._enabled:
            return []
        index = self._pool.index
        index.extend_hashes(sequence.block_hashes, sequence.salt, sequence.token_ids)
        limit = len(sequence.token_ids) - 1
        return index.match(sequence.block_hashes, sequence.salt, sequence.token_ids, limit)

    def admit(self, sequence: Sequence, matched: Seq[Block], spare: int = 0) -> bool:
        """Give a sequence matched blocks and room for all its tokens; False if there isn't any.

        ``spare`` blocks must stay available for others.
        """
        assert not sequence.block_table, f"{sequence} has blocks already"
        missing = self._num_blocks(len(sequence.token_ids)) - len(matched)
        if not self._pool.can_allocate(missing + spare, acquiring=matched):
            return False
        self._pool.acquire(matched)
        fresh = self._pool.allocate(missing, after=matched[-1] if matched else None)
        assert fresh is not None
        sequence.block_table = [*matched, *fresh]
        sequence.num_shared_blocks = len(matched)
        sequence.num_computed_tokens = len(matched) * self._block_size
        return True

    def grow(self, sequence: Sequence, num_tokens: int) -> bool:
        """Make room for KV of ``num_tokens`` more; False if the pool has none."""
        missing = self._num_blocks(sequence.num_computed_tokens + num_tokens)
        missing -= len(sequence.block_table)
        if missing <= 0:
            return True
        fresh = self._pool.allocate(missing, after=sequence.block_table[-1])
        if fresh is None:
            return False
        sequence.block_table += fresh
        return True

    def commit(self, sequence: Sequence, num_tokens: int) -> None:
        """Take note that KV of ``num_tokens`` more exists; share the blocks that became full."""
        sequence.num_computed_tokens += num_tokens
        if not self._enabled:
            return
        full = sequence.num_computed_tokens // self._block_size
        if full <= sequence.num_shared_blocks:
            return
        self._pool.index.extend_hashes(sequence.block_hashes, sequence.salt, sequence.token_ids)
        while sequence.num_shared_blocks < full and self._share_next(sequence):
            sequence.num_shared_blocks += 1

    def release(self, sequence: Sequence) -> None:
        """Take all blocks away; what is indexed stays cached."""
        self._pool.release(sequence.block_table)
        sequence.block_table = []
        sequence.num_shared_blocks = 0
        sequence.num_computed_tokens = 0

    def _share_next(self, sequence: Sequence) -> bool:
        i, size = sequence.num_shared_blocks, self._block_size
        canonical = self._pool.share(
            sequence.block_table[i],
            sequence.block_table[i - 1] if i else None,
            sequence.salt,
            sequence.block_hashes[i],
            tuple(sequence.token_ids[i * size : (i + 1) * size]),
        )
        if canonical is None:
            return False
        sequence.block_table[i] = canonical
        return True

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._block_size)
