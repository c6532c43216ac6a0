"""Warm-ups, pins, public prefixes and the views of an engine's cached prefixes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from prefix_layer.engine import Engine
from prefix_layer.messages import Failed, GetTree, Probe, Probed, TreeNode, Warm, Warmed
from tests.prefix_layer.driving import drive, greedy, make_engine, solo

A, B = b"tenant a", b"tenant b"
PROMPT = list(range(10, 60))  # twelve blocks of four and a tail of two


@pytest.fixture
def engine(tiny_llama: Path) -> Engine:
    return make_engine(tiny_llama)


def warm(engine: Engine, prompt: list[int], **how: object) -> Warmed | Failed:
    answer = engine.add(Warm("w", prompt, **how))  # type: ignore[arg-type]
    while answer is None:
        (event,) = engine.step() or [None]
        engine.check_invariants()
        answer = event if isinstance(event, (Warmed, Failed)) else None
    engine.check_invariants()
    return answer


def probe(engine: Engine, prompt: list[int], salt: bytes = b"") -> Probed:
    return engine.probe(Probe("p", prompt, salt))


def nodes(engine: Engine, limit: int = 50, depth: int = 16) -> list[TreeNode]:
    return engine.tree(GetTree("t", limit, depth)).nodes


def fill(engine: Engine, start: int = 100) -> None:
    """Push everything out that may go."""
    for i in range(40):
        solo(engine, [start + i, *range(60, 160)], 1)


def computed(engine: Engine) -> int:
    return engine.stats("s").tokens_by_source["computed"]


def test_every_token_is_computed_once_when_a_prompt_is_warmed_twice(engine: Engine) -> None:
    """The first warm-up computes the whole prompt, the second nothing, a request one token."""
    assert warm(engine, PROMPT) == Warmed("w", 0, len(PROMPT))
    before = computed(engine)
    assert warm(engine, PROMPT) == Warmed("w", len(PROMPT), 0)
    assert warm(engine, PROMPT[:30]) == Warmed("w", 30, 0)
    assert computed(engine) == before
    assert solo(engine, PROMPT, 1).num_cached_tokens == len(PROMPT) - 1
    assert computed(engine) == before + 1


def test_only_the_rest_is_computed_when_the_beginning_is_cached(engine: Engine) -> None:
    """A warm-up starts from what the traffic has left."""
    solo(engine, PROMPT[:31], 1)
    assert warm(engine, PROMPT) == Warmed("w", 31, len(PROMPT) - 31)


def test_answer_equals_a_cold_one_when_its_prompt_was_warmed(tiny_llama: Path) -> None:
    """Warmed KV is that of the prompt."""
    cold, warmed = make_engine(tiny_llama, prefix_caching=False), make_engine(tiny_llama)
    warm(warmed, PROMPT)
    assert solo(warmed, PROMPT, 12).token_ids == solo(cold, PROMPT, 12).token_ids


def test_pinned_prompt_stays_when_traffic_fills_the_pool(engine: Engine) -> None:
    """A pinned prompt outlives any traffic, an unpinned one does not."""
    assert warm(engine, PROMPT, pin=True) == Warmed("w", 0, 50, num_pinned_tokens=50)
    fill(engine)
    assert probe(engine, PROMPT).num_cached_tokens == len(PROMPT) - 1
    assert engine.stats("s").num_pinned_blocks == 13
    assert warm(engine, PROMPT, pin=False).num_pinned_tokens == 0  # type: ignore[union-attr]
    assert engine.stats("s").num_pinned_blocks == 0
    fill(engine, 180)
    assert probe(engine, PROMPT).num_cached_tokens == 0


def test_shared_blocks_stay_when_one_of_two_pins_goes(engine: Engine) -> None:
    """Blocks of two pinned prompts are pinned as long as one of them is."""
    longer = [*PROMPT[:32], *range(200, 220)]
    warm(engine, PROMPT, pin=True)
    warm(engine, longer, pin=True)
    warm(engine, PROMPT, pin=False)
    fill(engine)
    assert probe(engine, longer).num_cached_tokens == len(longer) - 1
    assert probe(engine, PROMPT).num_cached_tokens == 32


def test_pin_is_refused_when_half_the_pool_is_pinned(engine: Engine) -> None:
    """Pins leave room for the traffic, whatever is asked for."""
    answers = [warm(engine, [i, *PROMPT, *range(100, 200)], pin=True) for i in range(5)]
    assert [type(answer) for answer in answers] == [Warmed, Warmed, Warmed, Failed, Failed]
    assert isinstance(answers[3], Failed)
    assert "512 tokens" in answers[3].message
    assert solo(engine, list(range(200)), 4).finish_reason == "length"


@pytest.mark.parametrize("keep_pinned", [True, False])
def test_reset_spares_pins_only_when_told_to(engine: Engine, keep_pinned: bool) -> None:
    """A reset forgets everything that nobody uses; pins if they are not to be kept."""
    warm(engine, PROMPT, pin=True)
    solo(engine, [*range(100, 140)], 1)
    engine.reset(keep_pinned=keep_pinned)
    engine.check_invariants()
    assert probe(engine, PROMPT).num_cached_tokens == (len(PROMPT) - 1 if keep_pinned else 0)
    assert probe(engine, [*range(100, 140)]).num_cached_tokens == 0


def test_public_prefix_is_shared_when_tenants_differ(engine: Engine) -> None:
    """Tenants reuse the public prompt; what they add to it stays theirs."""
    warm(engine, PROMPT, public=True)
    private = [*PROMPT, *range(200, 220)]
    assert solo(engine, private, 1, salt=A).num_cached_tokens == len(PROMPT)
    assert probe(engine, private, A).num_cached_tokens == len(private) - 1
    assert probe(engine, private, B).num_cached_tokens == len(PROMPT)
    assert probe(engine, PROMPT[:30], B).num_cached_tokens == 29
    engine.check_invariants()


def test_public_prefix_comes_back_when_a_tenant_computes_it(engine: Engine) -> None:
    """Once evicted, its whole blocks are shared again by whoever computes them first."""
    warm(engine, PROMPT, public=True)
    engine.reset()
    solo(engine, [*PROMPT, 5], 1, salt=A)
    assert probe(engine, [*PROMPT, 5], B).num_cached_tokens == 48


def test_nothing_private_becomes_public_when_it_was_there_first(engine: Engine) -> None:
    """Blocks of a tenant stay that tenant's when a prompt like theirs is made public."""
    solo(engine, [*PROMPT, *range(200, 220)], 1, salt=A)
    warm(engine, PROMPT[:20], public=True)
    assert probe(engine, [*PROMPT, *range(200, 220)], B).num_cached_tokens == 20
    engine.check_invariants()


def test_other_tenants_find_nothing_when_a_prompt_is_private(engine: Engine) -> None:
    """Another salt computes every token, whatever was cached, warmed or pinned for the first."""
    warm(engine, PROMPT, salt=A, pin=True)
    before = computed(engine)
    assert solo(engine, PROMPT, 1, salt=B).num_cached_tokens == 0
    assert computed(engine) - before == len(PROMPT)
    assert probe(engine, PROMPT, b"tenant c").continuation == []


def test_probe_says_what_stands_there_instead_when_prompts_part(engine: Engine) -> None:
    """The cached continuation is given token by token, also from within a block."""
    solo(engine, PROMPT, 1)
    found = probe(engine, [*PROMPT[:21], 300, 301])
    assert found.num_cached_tokens == 21
    assert found.continuation[: len(PROMPT) - 21] == PROMPT[21:]
    assert found.tokens_by_tier == {"device": 21}


def test_probe_counts_evicted_tokens_when_they_had_to_go(engine: Engine) -> None:
    """What was cached and evicted is told from what never came."""
    solo(engine, PROMPT, 1)
    assert probe(engine, PROMPT).num_evicted_tokens == 0
    fill(engine)
    found = probe(engine, [*PROMPT, 1])
    assert found.num_cached_tokens + found.num_evicted_tokens >= 44
    assert found.num_evicted_tokens > 0
    assert probe(engine, [300, *PROMPT]).num_evicted_tokens == 0


def test_tree_lists_the_most_shared_prefix_first(engine: Engine) -> None:
    """Hits, references, children and pins of each prefix are those of its blocks."""
    for last in (200, 210, 220):
        solo(engine, [*PROMPT[:32], *range(last, last + 8)], 1)
    warm(engine, [*range(250, 280)], pin=True)
    shared, *others = nodes(engine)
    assert (shared.num_tokens, shared.num_hits, shared.num_children) == (32, 2, 3)
    assert shared.token_ids == PROMPT[:32]
    assert shared.parent_id is None
    children = [node for node in others if node.parent_id == shared.node_id]
    assert {node.token_ids[0] for node in children} == {200, 210, 220}
    assert [node.num_tokens for node in others if node.is_pinned] == [30]
    assert all(node.num_refs == 0 for node in [shared, *others])
    assert len(nodes(engine, limit=2)) == 2
    assert {node.depth for node in nodes(engine, depth=1)} == {1}
    assert engine.tree(GetTree("t", 1, 16)).num_nodes > 1


@pytest.fixture
def busy(engine: Engine) -> Iterator[Engine]:
    engine.add(greedy("busy", range(100, 160), 40))
    engine.step()
    yield engine
    assert drive(engine, []) == {}


def test_warm_up_runs_beside_traffic_when_others_generate(busy: Engine) -> None:
    """A warm-up is one more sequence of the batch, and is aborted like one."""
    assert busy.add(Warm("w", PROMPT)) is None
    events = busy.step()
    assert Warmed("w", 0, len(PROMPT)) in events
    assert busy.add(Warm("again", list(range(200, 300)))) is None
    busy.step()
    busy.abort("again")
    busy.abort("busy")
    busy.check_invariants()


def test_warm_up_fails_at_once_when_it_can_never_run(engine: Engine) -> None:
    """Empty and over-long prompts are refused as those of requests are."""
    assert isinstance(engine.add(Warm("w", [])), Failed)
    assert isinstance(engine.add(Warm("w", [1] * 5000)), Failed)
    assert isinstance(engine.add(Warm("w", [100_000])), Failed)
    assert not engine.has_work
