"""Protects what requests come back to, for as long as the traffic says that it pays."""

from math import sqrt

from prefix_layer.block import Block, BlockQueue
from prefix_layer.eviction.base import EvictionPolicy
from prefix_layer.eviction.kept_order import KeptOrder
from prefix_layer.eviction.protection import (
    KEPT,
    PASSING,
    PROVEN,
    SHARED_HITS,
    Protection,
)
from prefix_layer.eviction.shadow import Shadow

_CANDIDATES = (0.0, 2.0, 4.0, 8.0, 16.0)
_SHADOW_BLOCKS = 4096
_MIN_WINDOW = 4096
_KEEP = 0.9
_MARGIN = 1.1
_DEVIATIONS = 2
_SAMPLE_BYTES = 4


class AdaptivePolicy(EvictionPolicy):
    """LRU in which a first-time request displaces only what has not been used for a while.

    A block that a request came back to is *proven*, and so is all that continues it. A request
    that finds nothing but widely shared blocks (three hits and more) is a first-time one: its
    first blocks, up to 1/64 of the pool, are *kept* if some block has been unused for longer than
    the protection time (proven ones: twice that); all else is *passing* and goes first. A scan
    therefore only passes.

    The protection time, a multiple of the pool in uses of blocks, is chosen by set duelling: a
    shadow cache per candidate sees a sample of the conversations, and the one with the most hits
    rules. Protection 0 is LRU that keeps no more than a quarter of the pool of one first-time
    request; it rules until another is better by 10%, and by more than chance:
    hits come in runs of blocks, so chance moves them by a share of about 1/sqrt(runs),
    of which twice is asked.

    Source: protection by reuse distance: Duong et al., Improving cache management policies using
    dynamic reuse distances, MICRO 2012; duelling: Qureshi et al., Adaptive insertion policies for
    high performance caching, ISCA 2007; admission by request and the candidates: our replays.
    """

    def __init__(self, num_blocks: int) -> None:
        self._num_blocks = num_blocks
        self._clock = 0
        self._passing = BlockQueue()
        self._kept = KeptOrder()
        self._sampled_share = min(1.0, _SHADOW_BLOCKS / num_blocks)
        capacity = max(1, round(num_blocks * self._sampled_share))
        self._shadows = [Shadow(capacity, Protection.of(p, num_blocks)) for p in _CANDIDATES]
        self._ruler = self._shadows[0]
        self._next_choice = self._window = max(num_blocks, _MIN_WINDOW)

    @property
    def protection(self) -> float:
        """The protection time that rules now, in multiples of the pool."""
        return self._ruler.protection.min_age / self._num_blocks

    def insert(self, block: Block) -> None:
        """Keep what continues a proven block; let a first-time request displace or pass."""
        newcomer = _starts_anew(block)
        if newcomer:
            self._meet(block)
        else:
            self._follow(block, block.parent)
        block.frequency = 0
        self._use(block, newcomer=newcomer)

    def hit(self, block: Block) -> None:
        """Count the block as proven from now on."""
        self._use(block, newcomer=_starts_anew(block))
        self.remove(block)
        block.level = PROVEN
        block.frequency = min(block.frequency + 1, SHARED_HITS)

    def release(self, block: Block) -> None:
        """Queue as the most recently used of its kind."""
        self._clock += 1
        block.last_use = self._clock
        if block.level == PASSING:
            self._passing.append(block)
        else:
            self._kept.append(block)

    def remove(self, block: Block) -> None:
        """Forget the block."""
        if block.queue is not None:
            block.queue.remove(block)

    def evict(self) -> Block:
        """Give the oldest passing block, else the kept one that is least protected.

        A proven block whose child is merely kept waits: then a kept one goes.
        """
        victim = self._passing.first or self._kept.oldest(self._ruler.protection, self._clock)
        if victim is not None and not victim.evictable:
            victim = self._kept.oldest_kept
        assert victim is not None, "nothing is evictable"
        assert victim.evictable, f"{victim} heads the order but can't go"
        self.remove(victim)
        return victim

    def _meet(self, block: Block) -> None:
        has_room = self._kept.has_room(self._ruler.protection, self._clock)
        block.level = KEPT if has_room else PASSING
        block.run_length = 1
        block.sampled = self._samples(block)

    def _follow(self, block: Block, parent: Block | None) -> None:
        assert parent is not None
        block.sampled = parent.sampled
        block.level = parent.level
        block.run_length = 1 if parent.level == PROVEN else parent.run_length + 1
        if block.run_length > self._ruler.protection.max_run:
            block.level = PASSING

    def _samples(self, block: Block) -> bool:
        assert block.block_hash is not None
        head = int.from_bytes(block.block_hash[:_SAMPLE_BYTES], "little")
        return head < self._sampled_share * (1 << 8 * _SAMPLE_BYTES)

    def _use(self, block: Block, *, newcomer: bool) -> None:
        if block.sampled:
            for shadow in self._shadows:
                shadow.use(block, newcomer=newcomer, clock=self._clock)
        if self._clock >= self._next_choice:
            self._choose()

    def _choose(self) -> None:
        self._next_choice = self._clock + self._window
        if not self._shadows[0].is_full:
            return
        plain = self._shadows[0]
        best = max(self._shadows, key=lambda shadow: shadow.num_hits)
        chance = _DEVIATIONS * best.num_hits / sqrt(max(best.num_runs, 1.0))
        if best.num_hits < max(_MARGIN * plain.num_hits, plain.num_hits + chance):
            self._ruler = plain
        elif best.num_hits > _MARGIN * self._ruler.num_hits or self._ruler is plain:
            self._ruler = best
        for shadow in self._shadows:
            shadow.age(_KEEP)


def _starts_anew(block: Block) -> bool:
    """Say whether nothing, or only what is widely shared, comes before the block."""
    return block.parent is None or block.parent.frequency >= SHARED_HITS
