"""One contract suite over every policy, and what sets each of them apart."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_layer.block import Block
from prefix_layer.eviction import POLICIES, EvictionPolicy, TtlPolicy, make_policy
from prefix_layer.eviction.adaptive import AdaptivePolicy
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.trace import Trace, count_belady_bound, make_load, replay
from tests.prefix_layer.pools import blocks_of, count_cached, enter, make_pool, visit

SMALL = 300
PROMPTS = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=6).map(lambda names: blocks_of(*names)),
    min_size=1,
    max_size=60,
)


class Watched:
    """Checks each victim when it is chosen, against what the pool may give away."""

    def __init__(self, policy: EvictionPolicy) -> None:
        self._policy = policy
        self.held: set[Block] = set()

    def insert(self, block: Block) -> None:
        self.held.add(block)
        self._policy.insert(block)

    def hit(self, block: Block) -> None:
        assert block in self.held
        self._policy.hit(block)

    def release(self, block: Block) -> None:
        assert block in self.held
        self._policy.release(block)

    def remove(self, block: Block) -> None:
        self.held.remove(block)
        self._policy.remove(block)

    def evict(self) -> Block:
        victim = self._policy.evict()
        assert victim.ref_count == 0
        assert not any(block.parent is victim for block in self.held)
        self.held.remove(victim)
        return victim

    def expired(self) -> Block | None:
        return self._policy.expired()


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def make_cache(num_blocks: int, policy: str) -> PrefixCache:
    return PrefixCache(make_pool(num_blocks, policy), enabled=True)


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=60)
@given(prompts=PROMPTS, num_blocks=st.integers(6, 10))
def test_only_unused_leaves_go_when_any_prompts_come(
    policy: str, prompts: list[list[int]], num_blocks: int
) -> None:
    """No used block and no parent of a cached block is ever the victim."""
    pool = make_pool(num_blocks, policy)
    watched = Watched(make_policy(policy, num_blocks))
    pool._policy = watched
    cache = PrefixCache(pool, enabled=True)
    for prompt in prompts:
        visit(cache, prompt)
        assert watched.held == set(pool.index)
    pool.check_invariants()


@pytest.mark.parametrize("policy", POLICIES)
def test_pool_empties_and_refills_when_all_is_forgotten(policy: str) -> None:
    """Removing every block leaves the policy as good as new."""
    pool = make_pool(6, policy)
    cache = PrefixCache(pool, enabled=True)
    for _ in range(3):
        for name in range(5):
            visit(cache, blocks_of(9, name, name))
        pool.forget_unused()
        assert pool.count_by_state() == {"free": 6, "cached": 0, "active": 0}
    pool.check_invariants()


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=30)
@given(prompts=PROMPTS, pinned=st.integers(0, 10))
def test_pinned_blocks_stay_when_any_prompts_come(
    policy: str, prompts: list[list[int]], pinned: int
) -> None:
    """What somebody holds is there whatever comes, and goes like any other when it is let go."""
    pool = make_pool(12, policy)
    pool._policy = Watched(make_policy(policy, 12))
    cache = PrefixCache(pool, enabled=True)
    visit(cache, blocks_of(7, 7, 7, 7))
    blocks = list(pool.index)
    pool.acquire(blocks)
    for i, prompt in enumerate(prompts):
        if i == pinned:
            pool.release(blocks)
        visit(cache, prompt)
        if i < pinned:
            assert count_cached(cache, blocks_of(7, 7, 7, 7)) == 4
    pool.check_invariants([blocks] if len(prompts) <= pinned else [])
    if len(prompts) <= pinned:
        pool.release(blocks)
    for name in range(8, 20):
        visit(cache, blocks_of(name, name, name, name, name, name))
    pool.forget_unused()
    assert pool.count_by_state() == {"free": 12, "cached": 0, "active": 0}


@pytest.mark.parametrize("policy", POLICIES)
def test_blocks_go_when_their_time_is_over(policy: str) -> None:
    """Each use starts the time anew, a parent lives as long as its child, a user stops time."""
    clock, pool = Clock(), make_pool(20, policy)
    pool._policy = TtlPolicy(make_policy(policy, 20), 10, clock)
    cache = PrefixCache(pool, enabled=True)
    visit(cache, blocks_of(1, 2))
    visit(cache, blocks_of(3, 4))
    clock.now_s = 6
    visit(cache, [*blocks_of(1, 5), 0])
    used = enter(cache, blocks_of(6))
    assert used is not None
    clock.now_s = 12
    assert count_cached(cache, blocks_of(3, 4)) == 0
    assert count_cached(cache, blocks_of(1, 2)) == 1
    assert count_cached(cache, blocks_of(1, 5)) == 2
    clock.now_s = 100
    assert count_cached(cache, blocks_of(1, 5)) == 0
    assert count_cached(cache, blocks_of(6)) == 1
    cache.release(used)
    pool.check_invariants()
    clock.now_s = 111
    assert count_cached(cache, blocks_of(6)) == 0
    assert pool.count_by_state() == {"free": 20, "cached": 0, "active": 0}


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_beats_the_optimum_when_a_load_is_replayed(policy: str) -> None:
    """Hits lie between what the root alone gives and Belady's bound."""
    trace = make_load("mixed", 600)
    bound = count_belady_bound(trace, SMALL)
    assert 0 < replay(trace, SMALL, make_policy(policy, SMALL)) <= bound


def test_least_hit_block_goes_when_policy_is_lfu() -> None:
    """Hits count, not how long ago they were."""
    cache = make_cache(3, "lfu")
    for name in (1, 1, 1, 2, 2, 3, 4):
        visit(cache, [*blocks_of(name), 0])
    assert count_cached(cache, blocks_of(1)) == 1


def test_first_computed_leaf_goes_when_policy_is_fifo() -> None:
    """Use does not save a block."""
    cache = make_cache(4, "fifo")
    for name in (1, 2, 3):
        visit(cache, blocks_of(name))
    for name in (1, 4):
        visit(cache, blocks_of(name))
    visit(cache, blocks_of(5))
    assert [count_cached(cache, blocks_of(name)) for name in (1, 2, 3, 4, 5)] == [0, 1, 1, 1, 1]


def test_used_again_survives_a_scan_when_policy_is_arc() -> None:
    """Blocks seen once only push out blocks seen once."""
    cache = make_cache(6, "arc")
    for _ in range(2):
        visit(cache, [*blocks_of(1, 2), 0])
    for name in range(10, 40):
        visit(cache, blocks_of(name))
    assert count_cached(cache, blocks_of(1, 2)) == 2


def conversation_beyond_the_pool() -> Trace:
    """One conversation in four goes on, after more than the pool holds; all share a root."""
    gap, length = 60, 8
    requests = []
    for i in range(3000):
        fresh = [10_000 * (i + 1) + j for j in range(length)]
        past = i - gap
        goes_on = i % 4 == 0 and past >= 0
        requests.append([*requests[past], *fresh[:1]] if goes_on else [0, *fresh])
    return Trace("conversation", requests)


def test_adaptive_beats_lru_when_prompts_return_later_than_the_pool_lasts() -> None:
    """It learns to protect some of them, where LRU keeps none of them long enough."""
    trace = conversation_beyond_the_pool()
    lru = replay(trace, SMALL, make_policy("lru", SMALL))
    adaptive = AdaptivePolicy(SMALL)
    assert replay(trace, SMALL, adaptive) > 1.5 * lru
    assert adaptive.protection > 0


@pytest.mark.parametrize("load", ["uniform", "zipf", "temporal", "mixed"])
@pytest.mark.parametrize("num_blocks", [500, 2000])
def test_adaptive_keeps_up_with_lru_when_load_is_simulated(load: str, num_blocks: int) -> None:
    """Where LRU is right, the shadows say so."""
    trace = make_load(load, 2500)
    lru = replay(trace, num_blocks, make_policy("lru", num_blocks))
    assert replay(trace, num_blocks, make_policy("adaptive", num_blocks)) >= 0.98 * lru


def test_adaptive_is_lru_when_the_pool_suffices() -> None:
    """Recent conversations in a pool that holds them give it no reason to change."""
    trace = make_load("conversations", 1500)
    policy = AdaptivePolicy(4000)
    assert replay(trace, 4000, policy) == replay(trace, 4000, make_policy("lru", 4000))
    assert policy.protection == 0


def test_protected_blocks_stay_when_a_scan_passes() -> None:
    """Once protection rules, blocks that came back outlive a scan of twice the pool."""
    policy = AdaptivePolicy(SMALL)
    warm_up = conversation_beyond_the_pool().requests
    working_set = [[10**8 + 1000 * i + j for j in range(1, 9)] for i in range(1, 5)]
    scan = [[10**9 + 100 * i + j for j in range(20)] for i in range(2 * SMALL // 20)]
    before = Trace("before", [*warm_up, *working_set, *working_set])
    last = Trace("last", [*before.requests, *scan, *working_set])
    found = replay(last, SMALL, AdaptivePolicy(SMALL)) - replay(before, SMALL, policy)
    assert policy.protection > 0
    assert found == sum(map(len, working_set))
    plain = [replay(trace, SMALL, make_policy("lru", SMALL)) for trace in (before, last)]
    assert [after - until for until, after in pairwise(plain)] == [0]


def busy_client(num_requests: int) -> list[list[int]]:
    """Eight conversations of 40 blocks that are gone on with in turn, under one system prompt."""
    chats = [[0, *range(1000 * i, 1000 * i + 40)] for i in range(1, 9)]
    requests = []
    for i in range(num_requests):
        chat = chats[i % 8]
        requests.append([*chat, 10**6 + i])
    return requests


SCAN_BLOCKS = 8192 // 16


@pytest.mark.parametrize("num_blocks", [1024, 2048])
def test_scan_costs_another_client_little_when_the_pool_holds_both(num_blocks: int) -> None:
    """8k tokens that never come back lower the other's hit share by less than 5%.

    That can't hold for a pool that has no room for the working set and what the scan itself uses:
    blocks in use never go, so a pool of 512 blocks is emptied by the scan whatever the policy.
    """
    before, after = busy_client(160), busy_client(320)[160:]
    scan = [10**9 + i for i in range(SCAN_BLOCKS)]

    def hit_share(requests: list[list[int]]) -> float:
        """Replay, and return the share of ``after`` that hits."""
        trace = Trace("client", [*requests, *after])
        whole = replay(trace, num_blocks, make_policy("adaptive", num_blocks))
        part = replay(Trace("client", requests), num_blocks, make_policy("adaptive", num_blocks))
        return (whole - part) / sum(map(len, after))

    undisturbed = hit_share(before)
    assert undisturbed > 0.9
    assert hit_share([*before, scan]) > 0.95 * undisturbed


def test_scan_takes_the_rest_of_the_pool_only_when_nothing_has_been_learnt() -> None:
    """Three rounds of traffic and one long scan: what fits beside the scan is found again."""
    num_blocks, hot = 640, [[100 * i + j for j in range(33)] for i in range(8)]
    scan = [10**6 + i for i in range(478)]
    trace = Trace("scan", [*hot, *hot, *hot, scan, *hot])
    lru, adaptive = (
        replay(trace, num_blocks, make_policy(name, num_blocks)) for name in ("lru", "adaptive")
    )
    beside = num_blocks - len(scan)
    assert lru == 2 * 8 * 33
    assert adaptive >= lru + 0.9 * beside
