"""Prefix-affinity routing over two real engines: more of every prompt comes from a cache."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bench.bench_routing import converse, start_fleet

LOAD = {"conversations": 7, "turns": 3, "words": 160, "at_once": 1}  # in a fixed order
KV_TOKENS = 1536  # room for half of the conversations on each replica, not for all of them


@pytest.mark.slow
def test_twice_the_tokens_come_from_caches_when_prefixes_choose_the_replica(
    tmp_path: Path, serving_models: Path
) -> None:
    """The same conversations in turn and by affinity, at equal load: counters, no clock."""
    with ExitStack() as stack:
        front = start_fleet(stack, tmp_path, serving_models, KV_TOKENS)
        in_turn = converse(front.url, "round_robin", seed=1, **LOAD)
        by_prefix = converse(front.url, "affinity", seed=2, **LOAD)
    assert in_turn.prompt == pytest.approx(by_prefix.prompt, rel=0.05)
    assert by_prefix.share > 0.5
    assert by_prefix.share >= 2 * in_turn.share, (by_prefix.share, in_turn.share)
