"""Short ways to a pool, its prefix cache and sequences without a model."""

from collections.abc import Sequence as Seq

from prefix_layer.block_pool import BlockPool
from prefix_layer.eviction import make_policy
from prefix_layer.messages import Generate, Sampling
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.prefix_index import PrefixIndex
from prefix_layer.sequence import Sequence

BLOCK_SIZE = 4


def make_pool(num_blocks: int, policy: str = "lru") -> BlockPool:
    return BlockPool(num_blocks, PrefixIndex(BLOCK_SIZE, "model"), make_policy(policy, num_blocks))


def make_sequence(
    token_ids: Seq[int], request_id: str = "r", salt: bytes = b"", max_tokens: int = 64
) -> Sequence:
    command = Generate(request_id, list(token_ids), Sampling(max_tokens=max_tokens), salt)
    return Sequence(command, context_length=10_000)


def blocks_of(*names: int) -> list[int]:
    """Make tokens whose blocks are told apart by one number each."""
    return [name for name in names for _ in range(BLOCK_SIZE)]


def enter(cache: PrefixCache, token_ids: Seq[int], salt: bytes = b"") -> Sequence | None:
    """Admit a sequence and compute all of it; None when there is no room."""
    sequence = make_sequence(token_ids, salt=salt)
    if not cache.admit(sequence, cache.match(sequence)):
        return None
    sequence.num_cached_tokens = sequence.num_computed_tokens
    cache.commit(sequence, sequence.num_pending_tokens)
    return sequence


def visit(cache: PrefixCache, token_ids: Seq[int], salt: bytes = b"") -> int:
    """Let a sequence come and go; return how many of its blocks it found."""
    sequence = enter(cache, token_ids, salt)
    assert sequence is not None, "no room"
    cache.release(sequence)
    assert sequence.num_cached_tokens is not None
    return sequence.num_cached_tokens // BLOCK_SIZE


def count_cached(cache: PrefixCache, token_ids: Seq[int], salt: bytes = b"") -> int:
    """Count the blocks that a look-up of these tokens matches, without using them."""
    return len(cache.match(make_sequence([*token_ids, 0], salt=salt)).blocks)
