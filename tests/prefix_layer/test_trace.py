"""Traces: read, made up, replayed, and bounded."""

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_layer.errors import TraceError
from prefix_layer.eviction import POLICIES, LruPolicy, make_policy
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.trace import SIMULATED, Trace, count_belady_bound, make_load, read_trace, replay
from tests.prefix_layer.pools import BLOCK_SIZE, blocks_of, make_pool, make_sequence

PATHS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=30)


def as_trace(paths: list[list[int]]) -> Trace:
    """Give each distinct prefix an id."""
    ids: dict[tuple[int, ...], int] = {}
    requests = [
        [ids.setdefault(tuple(path[: i + 1]), len(ids)) for i in range(len(path))] for path in paths
    ]
    return Trace("paths", requests)


def visit_blocks(cache: PrefixCache, path: list[int]) -> int:
    """Let a prompt come and go whose last token, behind whole blocks, is never computed."""
    sequence = make_sequence([*blocks_of(*path), 9])
    assert cache.admit(sequence, cache.match(sequence))
    num_found = sequence.num_computed_tokens // BLOCK_SIZE
    cache.commit(sequence, sequence.num_pending_tokens - 1)
    cache.release(sequence)
    return num_found


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=40)
@given(paths=PATHS, num_blocks=st.integers(4, 8))
def test_replay_agrees_with_the_prefix_cache_when_prompts_are_tokens(
    policy: str, paths: list[list[int]], num_blocks: int
) -> None:
    """The engine's cache hits the same, given a block more for the token it always computes."""
    pool = make_pool(num_blocks + 1)
    pool._policy = make_policy(policy, num_blocks)
    cache = PrefixCache(pool, enabled=True)
    num_hits = sum(visit_blocks(cache, path) for path in paths)
    assert replay(as_trace(paths), num_blocks, make_policy(policy, num_blocks)) == num_hits


@settings(deadline=None, max_examples=60)
@given(paths=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3), max_size=6))
def test_bound_is_the_best_of_all_choices_when_blocks_are_few(paths: list[list[int]]) -> None:
    """Trying every set of kept blocks after every use finds no more hits and no fewer."""
    trace = as_trace(paths)
    best: dict[frozenset[int], int] = {frozenset(): 0}
    for block in [block for ids in trace.requests for block in ids]:
        after: dict[frozenset[int], int] = {}
        for kept, hits in best.items():
            for size in range(4):
                for choice in combinations(kept | {block}, size):
                    now = hits + (block in kept)
                    after[frozenset(choice)] = max(after.get(frozenset(choice), 0), now)
        best = after
    assert count_belady_bound(trace, 3) == max(best.values())


def test_bound_is_reached_when_everything_fits() -> None:
    """Every repeated block is a hit."""
    trace = as_trace([[0, 1], [0, 2], [0, 1]])
    assert count_belady_bound(trace, 10) == 3
    assert replay(trace, 10, LruPolicy()) == 3


@pytest.mark.parametrize("load", SIMULATED)
def test_load_is_the_same_when_the_seed_is(load: str) -> None:
    """Loads repeat, and differ by seed; no block stands twice in a prompt."""
    trace = make_load(load, 50, seed=1)
    assert trace == make_load(load, 50, seed=1)
    assert trace != make_load(load, 50, seed=2)
    assert len(trace.requests) == 50
    assert all(len(set(ids)) == len(ids) > 0 for ids in trace.requests)


@pytest.mark.parametrize("load", SIMULATED)
def test_block_has_one_parent_when_load_is_simulated(load: str) -> None:
    """An id stands for a whole prefix."""
    parents: dict[int, int | None] = {}
    for ids in make_load(load, 500).requests:
        for parent, block in zip([None, *ids], ids, strict=False):
            assert parents.setdefault(block, parent) == parent


def test_prompt_is_cut_when_longer_than_the_pool() -> None:
    """What can't be held is no hit."""
    assert replay(Trace("long", [[1, 2, 3, 4], [1, 2, 3, 4]]), 2, LruPolicy()) == 2


def test_file_is_read_when_lines_hold_hash_ids(tmp_path: Path) -> None:
    """Other fields and empty lines don't matter."""
    path = tmp_path / "t.jsonl"
    path.write_text('{"timestamp": 0, "hash_ids": [1, 2]}\n\n{"hash_ids": [1]}\n')
    assert read_trace(path) == Trace("t.jsonl", [[1, 2], [1]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no requests"),
        ('{"hash_ids": [1]}\nnonsense\n', ":2: "),
        ('{"other": 1}\n', ":1: .*hash_ids"),
        ('{"hash_ids": [1, 1]}\n', ":1: .*twice"),
        ('{"hash_ids": [-1]}\n', ":1: "),
    ],
)
def test_file_is_refused_when_a_line_is_no_request(tmp_path: Path, text: str, message: str) -> None:
    """The error names the place."""
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(path)


def test_missing_file_is_named_when_read(tmp_path: Path) -> None:
    """The error has the path."""
    with pytest.raises(TraceError, match=r"none\.jsonl: No such file"):
        read_trace(tmp_path / "none.jsonl")


def test_unknown_load_is_refused_when_made() -> None:
    """The error lists what there is."""
    with pytest.raises(TraceError, match="uniform, zipf, temporal, mixed"):
        make_load("magic")
