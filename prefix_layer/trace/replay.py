"""Runs a trace through `BlockPool` and `PrefixIndex` as the engine does, one request at a time.

Blocks hold one token, the block's id in the trace; everything else is the real thing. Not modelled:
requests that overlap, generated tokens, and the one token that a full hit computes again.
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

from prefix_layer.block import Block
from prefix_layer.block_pool import BlockPool
from prefix_layer.eviction import EvictionPolicy
from prefix_layer.prefix_index import PrefixIndex
from prefix_layer.trace.file import Trace

_TELL_EVERY = 256
_ID_BYTES = 8
_HASH_BYTES = 16


def replay(
    trace: Trace,
    num_blocks: int,
    policy: EvictionPolicy,
    tell: Callable[[int], None] | None = None,
) -> int:
    """Count the blocks that requests find cached in a pool of ``num_blocks``.

    A prompt longer than the pool is cut to it. ``tell`` hears the number of requests done.
    """
    index = PrefixIndex(1, trace.name, lambda _, ids: _name(ids[0]))
    pool = BlockPool(num_blocks, index, policy)
    num_hits = 0
    for number, (ids, hashes) in enumerate(_prompts(trace, num_blocks)):
        num_hits += _visit(pool, ids, hashes)
        if tell is not None and number % _TELL_EVERY == 0:
            tell(number)
    return num_hits


def _prompts(trace: Trace, num_blocks: int) -> Iterator[tuple[list[int], list[bytes]]]:
    names: dict[int, bytes] = {}
    for request in trace.requests:
        ids = request[:num_blocks]
        for block_id in ids:
            if block_id not in names:
                names[block_id] = _name(block_id)
        yield ids, [names[block_id] for block_id in ids]


def _visit(pool: BlockPool, ids: Sequence[int], hashes: Sequence[bytes]) -> int:
    matched = pool.index.match(hashes, b"", ids, len(ids)).blocks
    pool.acquire(matched)
    fresh = pool.allocate(len(ids) - len(matched), after=matched[-1] if matched else None)
    assert fresh is not None, "the prompt was cut to the pool"
    table: list[Block] = [*matched, *fresh]
    for i in range(len(matched), len(table)):
        pool.share(table[i], table[i - 1] if i else None, b"", hashes[i], (ids[i],))
    pool.release(table)
    return len(matched)


def _name(block_id: int) -> bytes:
    return blake2b(block_id.to_bytes(_ID_BYTES, "little"), digest_size=_HASH_BYTES).digest()
