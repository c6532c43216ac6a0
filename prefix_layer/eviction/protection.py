"""How long kept blocks are safe, and how much of a first-time request is kept. Pure."""

from dataclasses import dataclass

PASSING, KEPT, PROVEN = 0, 1, 2
SHARED_HITS = 3

_PROVEN_PATIENCE = 2
_POOL_PER_NEWCOMER = 64
_POOL_PER_SCAN = 4


@dataclass(frozen=True, slots=True)
class Protection:
    """How long kept blocks are safe from first-time requests, and how much of one is kept.

    ``min_age`` is in uses of blocks, ``max_run`` in blocks. ``patience`` is how many times longer
    blocks are safe that a request came back to.
    """

    min_age: float
    max_run: float
    patience: int

    @classmethod
    def of(cls, pools: float, num_blocks: int) -> "Protection":
        """Make the protection for a time in multiples of the pool.

        0 makes everything plain LRU, but for what a first-time request has past a quarter of the
        pool: one long scan must not push out all there is before the traffic has been learnt.
        """
        if pools == 0:
            return cls(0, max(2, num_blocks // _POOL_PER_SCAN), 1)
        max_run = max(2, num_blocks // _POOL_PER_NEWCOMER)
        return cls(pools * num_blocks, max_run, _PROVEN_PATIENCE)
