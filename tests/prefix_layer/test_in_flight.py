"""Requests that meet in flight: one prefix is computed once, nobody starves, nothing is lost."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefix_layer.engine import Engine
from prefix_layer.messages import Warm, Warmed
from tests.prefix_layer.driving import Answer, drive, greedy, make_engine, record, solo

BLOCK = 4
PREFIX = list(range(10, 130))
CHUNK = 32
TWICE = 31  # tokens that may be computed twice where waiting for them would take longer


@pytest.fixture(scope="module")
def cold(tiny_llama: Path) -> Engine:
    """An engine that never reuses anything."""
    return make_engine(tiny_llama, prefix_caching=False)


@pytest.fixture
def engine(tiny_llama: Path) -> Engine:
    return make_engine(tiny_llama, max_batch_tokens=CHUNK)


def computed(engine: Engine) -> int:
    return engine.stats("s").tokens_by_source["computed"]


@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize(
    "suffix",
    [lambda _: [5], lambda i: [200 + i, 201 + i], lambda i: [200 + i] * (i + 1)],
    ids=["identical", "own ending", "endings of all lengths"],
)
def test_shared_prefix_is_computed_once_when_all_arrive_at_once(
    engine: Engine, cold: Engine, count: int, suffix: Callable[[int], list[int]]
) -> None:
    """The tokens computed are those of one prefix, every ending and every answer."""
    prompts = [[*PREFIX, *suffix(i)] for i in range(count)]
    answers = drive(engine, [greedy(str(i), prompt, 4) for i, prompt in enumerate(prompts)])
    endings = sum(len(prompt) - len(PREFIX) for prompt in prompts)
    generated = count * 3  # the last token of an answer is never computed
    assert computed(engine) <= len(PREFIX) + endings + generated + count + TWICE
    for i, prompt in enumerate(prompts):
        assert answers[str(i)].token_ids == solo(cold, prompt, 4).token_ids
        assert answers[str(i)].num_cached_tokens <= len(prompt) - 1
    assert sum(answer.num_cached_tokens >= len(PREFIX) for answer in answers.values()) >= count - 2


@pytest.mark.parametrize("num_steps", [1, 2, 3])
@pytest.mark.parametrize("count", [4, 8])
def test_prefix_is_computed_once_when_its_leader_is_aborted_midway(
    engine: Engine, cold: Engine, count: int, num_steps: int
) -> None:
    """Another one goes on from where the leader was stopped."""
    for i in range(count):
        engine.add(greedy(str(i), [*PREFIX, 200 + i], 4))
    for _ in range(num_steps):
        engine.step()
    engine.abort("0")
    engine.check_invariants()
    answers = {str(i): Answer() for i in range(1, count)}
    while engine.has_work:
        record(answers, engine.step())
        engine.check_invariants()
    assert computed(engine) <= len(PREFIX) + BLOCK + count * (1 + 3 + 1) + TWICE
    for i in range(1, count):
        assert answers[str(i)].token_ids == solo(cold, [*PREFIX, 200 + i], 4).token_ids


def test_prefixes_are_shared_in_groups_when_a_batch_mixes_them(engine: Engine) -> None:
    """Several prefixes in one batch, and a prefix of a prefix, are each computed once."""
    groups = [PREFIX, [*PREFIX[:64], *range(200, 240)], list(range(130, 190))]
    prompts = [[*group, 300 + i] for i in range(3) for group in groups]
    drive(engine, [greedy(str(i), prompt, 1) for i, prompt in enumerate(prompts)])
    distinct = len(PREFIX) + 40 + 60
    assert computed(engine) <= distinct + len(prompts) * 2 + len(groups) * TWICE


def test_warm_up_and_requests_share_one_computation_when_they_meet(engine: Engine) -> None:
    """A warm-up leads like any request; who comes meanwhile waits for it."""
    assert engine.add(Warm("w", PREFIX, pin=True)) is None
    engine.add(greedy("r", [*PREFIX, 7], 2))
    events = []
    while engine.has_work:
        events += engine.step()
        engine.check_invariants()
    assert Warmed("w", 0, len(PREFIX), len(PREFIX)) in events
    assert computed(engine) <= len(PREFIX) + 3 + TWICE


def test_cold_request_is_served_when_warm_ones_keep_coming(tiny_llama: Path) -> None:
    """Longest prefix first starves nobody, however many better ones arrive."""
    engine = make_engine(tiny_llama, max_batch_tokens=CHUNK, max_sequences=1)
    solo(engine, PREFIX, 1)
    engine.add(greedy("cold", range(200, 260), 1))
    answered: list[str] = []
    for i in range(60):
        engine.add(greedy(f"warm{i}", [*PREFIX, i], 1))
        answered.extend(event.request_id for event in engine.step())
        if "cold" in answered:
            break
    assert "cold" in answered
    assert answered.index("cold") <= 10


@st.composite
def workloads(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Draw requests as (step of arrival, prefix length, ending, tokens to generate)."""
    request = st.tuples(
        st.integers(0, 12), st.integers(0, 24), st.integers(200, 203), st.integers(1, 14)
    )
    return draw(st.lists(request, min_size=2, max_size=7))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(work=workloads(), num_blocks=st.integers(11, 16), aborted=st.sets(st.integers(0, 6)))
def test_no_token_is_lost_or_repeated_when_the_pool_is_tiny(
    tiny_llama: Path,
    cold: Engine,
    work: list[tuple[int, int, int, int]],
    num_blocks: int,
    aborted: set[int],
) -> None:
    """Whatever is preempted, aborted or shared, each answer is the one it has alone."""
    engine = make_engine(tiny_llama, kv_tokens=num_blocks * BLOCK, max_batch_tokens=8)
    prompts = {
        str(i): ([*PREFIX[:length], ending], arrival, count)
        for i, (arrival, length, ending, count) in enumerate(work)
    }
    answers = {name: Answer() for name in prompts}
    gone: set[str] = set()
    for step in range(600):
        for name, (prompt, arrival, count) in prompts.items():
            if arrival == step:
                assert engine.add(greedy(name, prompt, count)) is None
            if arrival + 3 == step and int(name) in aborted and not answers[name].finish_reason:
                engine.abort(name)
                gone.add(name)
        events = engine.step()
        record(answers, events)
        engine.check_invariants()
        if step > 16 and not engine.has_work:
            break
    assert not engine.has_work
    for name, (prompt, _, count) in prompts.items():
        alone = solo(cold, prompt, count).token_ids
        if name in gone:
            assert answers[name].token_ids == alone[: len(answers[name].token_ids)]
        else:
            assert answers[name].token_ids == alone
            assert answers[name].finish_reason == "length"


def steps_of(engine: Engine, victim: list[int], num_steps: int) -> list[int]:
    """Return the tokens computed in each step of one tenant's prompt beside another's."""
    engine.reset()
    engine.add(greedy("victim", victim, 2, salt=b"victim"))
    for _ in range(num_steps):
        engine.step()
    engine.add(greedy("guesser", PREFIX, 2, salt=b"guesser"))
    counts, seen = [computed(engine)], False
    while not seen:
        seen = any(event.request_id == "guesser" for event in engine.step())
        counts.append(computed(engine))
    while engine.has_work:
        engine.step()
    return [after - before for before, after in pairwise(counts)]


@pytest.mark.parametrize("num_steps", [0, 1, 3, 8])
def test_guesser_learns_nothing_when_its_prompt_is_another_tenants(
    engine: Engine, num_steps: int
) -> None:
    """Not yet begun, in flight or cached: every step is as beside a prompt of other words."""
    foreign = [token + 150 for token in PREFIX]
    expected = steps_of(engine, foreign, num_steps)
    assert steps_of(engine, PREFIX, num_steps) == expected
    assert sum(expected) >= len(PREFIX)
