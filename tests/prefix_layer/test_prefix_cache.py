"""What is shared between sequences, and what never is (field cases E01 and E05)."""

import pytest

from prefix_layer.block_pool import BlockPool
from prefix_layer.eviction import POLICIES, LruPolicy, make_policy
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.prefix_index import PrefixIndex
from tests.prefix_layer.pools import (
    BLOCK_SIZE,
    blocks_of,
    count_cached,
    enter,
    make_pool,
    make_sequence,
    visit,
)


def make_cache(num_blocks: int, policy: str = "lru") -> tuple[PrefixCache, BlockPool]:
    pool = make_pool(num_blocks, policy)
    return PrefixCache(pool, enabled=True), pool


def test_whole_blocks_are_found_when_a_prompt_comes_again() -> None:
    """A prompt finds all its full blocks, but the last token is always computed."""
    cache, _ = make_cache(16)
    assert visit(cache, blocks_of(1, 2, 3)) == 0
    assert visit(cache, blocks_of(1, 2, 3)) == 2
    assert visit(cache, [*blocks_of(1, 2, 3), 9]) == 3
    assert visit(cache, blocks_of(1, 3, 2)) == 1


def test_nothing_is_found_when_the_salt_differs() -> None:
    """Tenants don't see each other's blocks."""
    cache, _ = make_cache(16)
    visit(cache, blocks_of(1, 2, 3), salt=b"a")
    assert count_cached(cache, blocks_of(1, 2, 3), salt=b"b") == 0
    assert count_cached(cache, blocks_of(1, 2, 3), salt=b"a") == 3


def test_nothing_is_shared_when_caching_is_off() -> None:
    """Off means: no match and nothing kept."""
    pool = make_pool(16)
    cache = PrefixCache(pool, enabled=False)
    visit(cache, blocks_of(1, 2, 3))
    assert visit(cache, blocks_of(1, 2, 3)) == 0
    assert pool.count_by_state() == {"free": 16, "cached": 0, "active": 0}


def test_foreign_blocks_never_match_when_all_hashes_collide() -> None:
    """Tokens, parents and salts are compared, so a broken hash only costs hits (E01)."""
    index = PrefixIndex(BLOCK_SIZE, "model", hash_block=lambda _parent, _tokens: bytes(32))
    pool = BlockPool(16, index, LruPolicy())
    cache = PrefixCache(pool, enabled=True)
    visit(cache, blocks_of(1, 2, 3), salt=b"a")
    assert count_cached(cache, blocks_of(4, 5, 6), salt=b"a") == 0
    assert count_cached(cache, blocks_of(2), salt=b"a") == 0
    assert count_cached(cache, blocks_of(1), salt=b"b") == 0
    assert count_cached(cache, blocks_of(1), salt=b"a") == 1
    assert visit(cache, blocks_of(4, 5, 6), salt=b"a") == 0
    pool.check_invariants()


def test_twin_waits_for_nothing_when_blocks_are_not_computed_yet() -> None:
    """Blocks are found only after their KV exists (E07)."""
    cache, pool = make_cache(16)
    first, second = make_sequence(blocks_of(1, 2, 3)), make_sequence(blocks_of(1, 2, 3))
    assert cache.admit(first, cache.match(first))
    assert cache.match(second).num_tokens == 0
    cache.commit(first, BLOCK_SIZE + 1)
    assert [b.block_id for b in cache.match(second).blocks] == [first.block_table[0].block_id]
    pool.check_invariants([first.block_table])


def test_twins_end_on_one_copy_when_both_computed_the_same() -> None:
    """Blocks computed twice are kept once, and the spare ones are freed at once."""
    cache, pool = make_cache(16)
    first, second = make_sequence(blocks_of(1, 2, 3)), make_sequence(blocks_of(1, 2, 4))
    for sequence in (first, second):
        assert cache.admit(sequence, cache.match(sequence))
    for sequence in (first, second):
        cache.commit(sequence, sequence.num_pending_tokens)
    assert first.block_table[:2] == second.block_table[:2]
    assert first.block_table[2] != second.block_table[2]
    assert pool.count_by_state() == {"free": 12, "cached": 0, "active": 4}
    pool.check_invariants([first.block_table, second.block_table])


def test_longest_beginning_is_found_when_many_blocks_follow_one() -> None:
    """Among any siblings the one that shares most leading tokens is the source."""
    cache, pool = make_cache(64)
    parent = blocks_of(1)
    for tail in ([2, 2, 2, 2], [2, 3, 4, 5], [2, 3, 4, 7], [2, 3, 9, 9], [5, 5, 5, 5], [2, 3]):
        visit(cache, [*parent, *tail])
    for asked, shared in [
        ([2, 3, 4, 6, 0], [2, 3, 4]),
        ([2, 3, 9, 9, 0], [2, 3, 9, 9]),
        ([2, 3, 9, 9], [2, 3, 9]),
        ([2, 9, 9, 9, 0], [2]),
        ([2, 0, 0, 0, 0], [2]),
        ([9, 2, 3, 4, 0], []),
        ([2], []),
    ]:
        match = cache.match(make_sequence([*parent, *asked]))
        assert match.num_tokens == BLOCK_SIZE + len(shared)
    assert pool.count_by_state()["cached"] == 6


def test_source_is_pinned_when_its_tokens_are_to_be_copied() -> None:
    """Until the copy is made nothing can evict the source; afterwards it can go."""
    cache, pool = make_cache(4)
    visit(cache, blocks_of(1, 2))
    sequence = make_sequence([*blocks_of(1), 2, 2, 3])
    assert cache.admit(sequence, cache.match(sequence))
    copy = sequence.pending_copy
    assert copy is not None
    assert (copy.source.token_ids, copy.num_tokens) == ((2, 2, 2, 2), 2)
    assert copy.target is sequence.block_table[1]
    assert pool.allocate(2) is None
    pool.forget_unused()
    assert copy.source.indexed
    pool.check_invariants([sequence.held_blocks])
    cache.commit(sequence, sequence.num_pending_tokens)
    assert sequence.pending_copy is None
    pool.forget_unused()
    assert not copy.source.indexed
    pool.check_invariants([sequence.held_blocks])


def test_nothing_is_indexed_when_a_sequence_leaves_before_its_copy() -> None:
    """KV that was never copied is not found by anybody."""
    cache, pool = make_cache(8)
    visit(cache, blocks_of(1, 2))
    before = set(pool.index)
    sequence = make_sequence([*blocks_of(1), 2, 2, 3])
    assert cache.admit(sequence, cache.match(sequence))
    cache.release(sequence)
    assert set(pool.index) == before
    assert pool.count_by_state() == {"free": 6, "cached": 2, "active": 0}
    pool.check_invariants()


def test_tail_goes_when_a_fuller_block_holds_its_tokens() -> None:
    """A chat that goes on leaves no trail of half-filled blocks."""
    cache, pool = make_cache(16)
    chat = [*blocks_of(1), 2]
    for token in range(3, 12):
        visit(cache, chat)
        assert pool.count_by_state()["cached"] == -(-len(chat) // BLOCK_SIZE)
        chat.append(token)
    pool.check_invariants()


def test_tail_stays_when_its_sequence_still_writes_behind_it() -> None:
    """A fuller block of another sequence does not take a running one's block away."""
    cache, pool = make_cache(16)
    running = enter(cache, [1, 2])
    assert running is not None
    visit(cache, [1, 2, 3, 4, 5])
    pool.check_invariants([running.held_blocks])
    assert running.block_table[0].token_ids == (1, 2)
    running.token_ids += [3, 4, 6]
    assert cache.grow(running, 3)
    cache.commit(running, 3)
    pool.check_invariants([running.held_blocks])
    cache.release(running)
    pool.check_invariants()
    assert count_cached(cache, [1, 2, 3, 4]) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_deepest_block_goes_first_when_a_chain_must_shrink(policy: str) -> None:
    """Two blocks wanted, one free: a3 goes, a1 and a2 still match (E05 case 1)."""
    cache, pool = make_cache(4, policy)
    visit(cache, blocks_of(1, 2, 3))
    assert enter(cache, blocks_of(8, 9)) is not None
    assert count_cached(cache, blocks_of(1, 2, 3)) == 2
    assert pool.num_evicted == 1


@pytest.mark.parametrize("policy", ["lru", "s3fifo"])
def test_hot_prefix_survives_when_one_shot_prompts_pass(policy: str) -> None:
    """Use counts, not insertion order (E05 case 2)."""
    cache, _ = make_cache(4, policy)
    visit(cache, blocks_of(1))
    for i in range(10):
        if i % 2 == 0:
            assert visit(cache, [*blocks_of(1), 9]) == 1
        visit(cache, blocks_of(100 + i))
    assert count_cached(cache, blocks_of(1)) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_matched_blocks_are_pinned_when_their_own_request_evicts(policy: str) -> None:
    """A request never evicts what it has just matched (E05 case 3)."""
    cache, pool = make_cache(4, policy)
    visit(cache, blocks_of(1, 2, 3))
    sequence = enter(cache, blocks_of(1, 2, 7, 8))
    assert sequence is not None
    assert sequence.num_cached_tokens == 2 * BLOCK_SIZE
    assert count_cached(cache, blocks_of(1, 2, 3)) == 2
    pool.check_invariants([sequence.block_table])


@pytest.mark.parametrize("policy", POLICIES)
def test_parent_stays_when_a_branch_is_evicted(policy: str) -> None:
    """Of a1-a2 and a1-b2 a leaf goes, never the parent of another (E05 case 4)."""
    cache, pool = make_cache(4, policy)
    visit(cache, blocks_of(1, 2))
    visit(cache, blocks_of(1, 3))
    assert enter(cache, blocks_of(8, 9)) is not None
    left = [count_cached(cache, blocks_of(1, child)) for child in (2, 3)]
    assert sorted(left) == [1, 2]
    assert pool.num_evicted == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_newcomer_is_refused_when_all_blocks_are_in_use(policy: str) -> None:
    """No referenced block is taken and nothing is lost by trying (E05 case 5)."""
    cache, pool = make_cache(4, policy)
    first = enter(cache, blocks_of(1, 2, 3))
    assert first is not None
    before = pool.count_by_state()
    assert enter(cache, blocks_of(1, 8, 9)) is None
    assert not cache.grow(first, 2 * BLOCK_SIZE)
    assert pool.count_by_state() == before
    assert count_cached(cache, blocks_of(1, 2, 3)) == 3
    pool.check_invariants([first.block_table])


def test_every_cached_block_goes_when_unused_ones_are_forgotten() -> None:
    """A reset keeps only what running sequences hold."""
    cache, pool = make_cache(8)
    visit(cache, blocks_of(1, 2, 3))
    running = enter(cache, blocks_of(1, 7))
    assert running is not None
    pool.forget_unused()
    assert pool.count_by_state() == {"free": 6, "cached": 0, "active": 2}
    assert count_cached(cache, blocks_of(1, 2, 3)) == 1
    cache.release(running)
    pool.forget_unused()
    assert pool.count_by_state() == {"free": 8, "cached": 0, "active": 0}
    pool.check_invariants()


def test_s3fifo_keeps_a_working_set_when_a_scan_passes() -> None:
    """Blocks asked for again outlive any number of blocks seen once; under LRU they don't."""
    kept = {}
    for policy in ("lru", "s3fifo"):
        cache, _ = make_cache(8, policy)
        for _ in range(3):
            for name in (1, 2, 3):
                visit(cache, [*blocks_of(name), 0])
        for name in range(100, 120):
            visit(cache, blocks_of(name))
        kept[policy] = sum(count_cached(cache, blocks_of(name)) for name in (1, 2, 3))
    assert kept == {"lru": 0, "s3fifo": 3}


def test_policy_of_unknown_name_is_refused_when_made() -> None:
    """The error says which policies there are."""
    with pytest.raises(Exception, match=r"magic.*lru, lfu, fifo, arc, s3fifo"):
        make_policy("magic", 8)
