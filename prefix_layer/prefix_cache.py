"""Gives sequences their blocks: matched ones first, empty ones for the rest. Knows no tensors.

A block that matches only in part is never shared: its matching KV is copied to the first empty one.
"""

from collections.abc import Sequence as Seq

from prefix_layer.block import Block, BlockCopy
from prefix_layer.block_pool import BlockPool
from prefix_layer.prefix_index import PrefixMatch
from prefix_layer.sequence import Sequence
from prefix_layer.tiers import BlockKey, KvTiers, keys_of


class PrefixCache:
    """The block tables of all sequences over one pool. ``enabled`` off: nothing is ever shared."""

    def __init__(self, pool: BlockPool, *, enabled: bool, tiers: KvTiers | None = None) -> None:
        self._pool = pool
        self._tiers = tiers
        self._enabled = enabled
        self._block_size = pool.index.block_size

    def match(self, sequence: Sequence) -> PrefixMatch:
        """Find the cached tokens that the sequence can start from.

        At least one token is always left to compute: its logits give the next one.
        """
        if not self._enabled or sequence.wants_prompt_logits:
            return PrefixMatch([], None, 0)
        self._pool.drop_expired()
        index = self._pool.index
        index.extend_hashes(sequence.block_hashes, sequence.salt, sequence.token_ids)
        limit = len(sequence.token_ids) - 1
        return index.match(sequence.block_hashes, sequence.salt, sequence.token_ids, limit)

    def find(self, token_ids: Seq[int], salt: bytes) -> PrefixMatch:
        """Find what is cached of these tokens, all of them included."""
        if not self._enabled:
            return PrefixMatch([], None, 0)
        self._pool.drop_expired()
        index, hashes = self._pool.index, list[bytes]()
        index.extend_hashes(hashes, salt, token_ids)
        return index.match(hashes, salt, token_ids, len(token_ids))

    def admit(self, sequence: Sequence, match: PrefixMatch, spare: int = 0) -> bool:
        """Give a sequence matched blocks and room for all its tokens; False if there isn't any.

        ``spare`` blocks must stay available for others. A partial match that would take the last
        room is done without.
        """
        assert not sequence.block_table, f"{sequence} has blocks already"
        whole, partial = match.blocks, match.partial
        missing = self._num_blocks(len(sequence.token_ids)) - len(whole)
        if partial and not self._pool.can_allocate(missing + spare, [*whole, partial.block]):
            partial = None
        if not self._pool.can_allocate(missing + spare, whole):
            return False
        self.prefetch(sequence, match, is_queued=False)
        if sequence.fetch is not None:
            partial = None
        self._pool.acquire([*whole, partial.block] if partial else whole)
        if self._tiers is not None:
            self._tiers.note_reuse(whole)
        fresh = self._pool.allocate(missing, after=whole[-1] if whole else None)
        assert fresh is not None
        sequence.block_table = [*whole, *fresh]
        sequence.num_shared_blocks = len(whole)
        sequence.num_computed_tokens = len(whole) * self._block_size
        if partial:
            sequence.pending_copy = BlockCopy(partial.block, fresh[0], partial.num_tokens)
            sequence.num_computed_tokens += partial.num_tokens
        return True

    def prefetch(
        self, sequence: Sequence, match: PrefixMatch | None = None, *, is_queued: bool = True
    ) -> None:
        """Ask the tiers for the blocks that follow the matched ones, unless they are asked."""
        if self._tiers is None or not self._enabled or sequence.wants_prompt_logits:
            return
        match = self.match(sequence) if match is None else match
        first = len(match.blocks)
        if sequence.fetch is not None and sequence.fetch.next_depth != first:
            self._end_fetch(sequence)
        if sequence.fetch is None and any(map(self._tiers.pays, self._keys(sequence, first, 1))):
            keys = self._keys(sequence, first)
            sequence.fetch = self._tiers.start(keys, is_queued=is_queued)
        if sequence.fetch is not None and not is_queued:
            self._tiers.hurry(sequence.fetch)

    def load(self, sequence: Sequence) -> bool:
        """Take the blocks that have come from a tier; True while more are on their way."""
        if self._tiers is None or sequence.fetch is None:
            return False
        while True:
            block = sequence.block_table[sequence.num_computed_tokens // self._block_size]
            taken = self._tiers.take(sequence.fetch, block.block_id)
            if taken == "coming":
                return True
            if taken is None:
                self._end_fetch(sequence)
                return False
            self._take_over(sequence, block)

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
        """Take note that KV of ``num_tokens`` more exists; share what became full.

        A pending copy counts as done. A prompt is shared to its last token as soon as it is
        computed.
        """
        self._unpin(sequence)
        before = sequence.num_computed_tokens
        sequence.num_computed_tokens += num_tokens
        if not self._enabled:
            return
        self._share_full(sequence)
        if before < sequence.num_prompt_tokens <= sequence.num_computed_tokens:
            self._share_tail(sequence)

    def release(self, sequence: Sequence) -> None:
        """Take all blocks away; what was computed stays cached, the last incomplete block too."""
        if self._enabled and sequence.pending_copy is None:
            self._share_tail(sequence)
        self._end_fetch(sequence)
        self._unpin(sequence)
        self._pool.release(sequence.block_table)
        sequence.block_table = []
        sequence.num_shared_blocks = 0
        sequence.num_computed_tokens = 0

    def _take_over(self, sequence: Sequence, block: Block) -> None:
        """Count a loaded block as computed and share it."""
        sequence.num_computed_tokens += self._block_size
        if sequence.num_cached_tokens is not None and not sequence.was_preempted:
            sequence.num_cached_tokens += self._block_size
        self._share_full(sequence)
        block.stored = block.indexed

    def _keys(self, sequence: Sequence, first: int, count: int | None = None) -> list[BlockKey]:
        """Name the blocks from ``first`` that could be loaded; one token is left to compute."""
        size = self._block_size
        last = (len(sequence.token_ids) - 1) // size
        last = last if count is None else min(first + count, last)
        return keys_of(sequence.block_hashes, sequence.token_ids, size, first, last)

    def _end_fetch(self, sequence: Sequence) -> None:
        if self._tiers is not None and sequence.fetch is not None:
            self._tiers.end(sequence.fetch)
            sequence.fetch = None

    def _unpin(self, sequence: Sequence) -> None:
        if sequence.pending_copy is not None:
            self._pool.release([sequence.pending_copy.source])
            sequence.pending_copy = None

    def _share_full(self, sequence: Sequence) -> None:
        full = sequence.num_computed_tokens // self._block_size
        if full <= sequence.num_shared_blocks:
            return
        self._pool.index.extend_hashes(sequence.block_hashes, sequence.salt, sequence.token_ids)
        while sequence.num_shared_blocks < full and self._share_next(sequence):
            sequence.num_shared_blocks += 1

    def _share_tail(self, sequence: Sequence) -> None:
        """Index what the last block holds so far, unless its tokens are found already.

        Its sequence goes on writing behind these tokens.
        """
        full = sequence.num_shared_blocks
        tokens = tuple(sequence.token_ids[full * self._block_size : sequence.num_computed_tokens])
        if not 0 < len(tokens) < self._block_size:
            return
        index, table = self._pool.index, sequence.block_table
        parent = table[full - 1] if full else None
        nearest = index.nearest(parent, sequence.salt, tokens)
        if nearest is not None and nearest.num_tokens == len(tokens):
            return
        own_hash = index.hash_next(sequence.block_hashes[:full], sequence.salt, tokens)
        self._pool.share(table[full], parent, sequence.salt, own_hash, tokens)

    def _share_next(self, sequence: Sequence) -> bool:
        i, size = sequence.num_shared_blocks, self._block_size
        canonical = self._pool.share(
            sequence.block_table[i],
            sequence.block_table[i - 1] if i else None,
            self._pool.index.salt_of(sequence.block_hashes[i], sequence.salt),
            sequence.block_hashes[i],
            tuple(sequence.token_ids[i * size : (i + 1) * size]),
        )
        if canonical is None:
            return False
        sequence.block_table[i] = canonical
        return True

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._block_size)
