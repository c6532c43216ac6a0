"""What no policy can beat."""

from heapq import heappop, heappush

from prefix_layer.trace.file import Trace


def count_belady_bound(trace: Trace, num_blocks: int) -> int:
    """Count the hits of Belady's rule: keep the blocks whose next use is nearest.

    An upper bound for prefix trees: it may keep a block without its parent, and need not take in
    what it will not keep.

    Source: Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems
    Journal 5 (2), 1966, with bypass.
    """
    never = len(trace.requests)
    uses = [(time, block) for time, ids in enumerate(trace.requests) for block in ids[:num_blocks]]
    next_use = _next_uses(uses, never)
    cached: dict[int, int] = {}
    farthest: list[tuple[int, int]] = []
    num_hits = 0
    for (_, block), time in zip(uses, next_use, strict=True):
        num_hits += cached.pop(block, None) is not None
        if time == never:
            continue
        cached[block] = time
        heappush(farthest, (-time, block))
        while len(cached) > num_blocks:
            negated, victim = heappop(farthest)
            if cached.get(victim) == -negated:
                del cached[victim]
    return num_hits


def _next_uses(uses: list[tuple[int, int]], never: int) -> list[int]:
    upcoming: dict[int, int] = {}
    times = [never] * len(uses)
    for i in range(len(uses) - 1, -1, -1):
        time, block = uses[i]
        times[i] = upcoming.get(block, never)
        upcoming[block] = time
    return times
