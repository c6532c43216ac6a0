"""Which tokens a step computes: order, budget, waiting for a twin, and preemption."""

from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.scheduler import Batch, Scheduler
from prefix_layer.sequence import Sequence
from tests.prefix_layer.pools import BLOCK_SIZE, blocks_of, make_pool, make_sequence, visit


class Desk:
    """A scheduler over a pool, with the commit that the engine does after each step."""

    def __init__(self, num_blocks: int = 64, budget: int = 16, max_sequences: int = 8) -> None:
        self.pool = make_pool(num_blocks)
        self.cache = PrefixCache(self.pool, enabled=True)
        self.scheduler = Scheduler(self.cache, BLOCK_SIZE, budget, max_sequences)

    def add(self, name: str, token_ids: list[int]) -> Sequence:
        sequence = make_sequence(token_ids, name)
        self.scheduler.add(sequence)
        return sequence

    def step(self) -> dict[str, int]:
        batch = self.scheduler.schedule()
        assert isinstance(batch, Batch)
        plan = {chunk.sequence.request_id: chunk.num_tokens for chunk in batch.chunks}
        for chunk in batch.chunks:
            ended = chunk.reaches_end
            self.cache.commit(chunk.sequence, chunk.num_tokens)
            if ended:
                chunk.sequence.append(7)
        self.pool.check_invariants([s.block_table for s in self.scheduler.running])
        return plan


def test_decode_goes_first_when_a_long_prompt_is_under_way() -> None:
    """Sequences that decode get their token in every step; prompts share the rest."""
    desk = Desk(budget=10)
    desk.add("short", [1, 2])
    assert desk.step() == {"short": 2}
    desk.add("long", list(range(100, 130)))
    assert [desk.step() for _ in range(5)] == [
        {"short": 1, "long": 9},
        {"short": 1, "long": 9},
        {"short": 1, "long": 9},
        {"short": 1, "long": 3},
        {"short": 1, "long": 1},
    ]


def test_budget_and_places_bound_a_step_when_many_wait() -> None:
    """Neither more tokens nor more sequences than configured run at once."""
    desk = Desk(budget=16, max_sequences=2)
    for i in range(4):
        desk.add(str(i), [i * 10 + j for j in range(6)])
    assert desk.step() == {"0": 6, "1": 6}
    assert set(desk.step()) == {"0", "1"}
    desk.scheduler.abort("0")
    assert desk.step() == {"1": 1, "2": 6}
    assert [s.request_id for s in desk.scheduler.waiting] == ["3"]


def test_longest_prefix_enters_first_when_one_place_is_free() -> None:
    """A newcomer that is mostly cached passes one that is not."""
    desk = Desk(max_sequences=1)
    visit(desk.cache, blocks_of(1, 2))
    desk.add("cold", [*blocks_of(8, 9), 1])
    desk.add("warm", [*blocks_of(1, 2), 1])
    assert desk.step() == {"warm": 1}


def test_cold_newcomer_enters_when_it_was_passed_over_often() -> None:
    """Ageing: nobody waits for ever behind newcomers with cached prefixes."""
    desk = Desk(max_sequences=1)
    visit(desk.cache, blocks_of(1, 2))
    desk.add("cold", [*blocks_of(8, 9), 1])
    entered = []
    for i in range(12):
        desk.add(f"warm{i}", [*blocks_of(1, 2), 1])
        (name,) = desk.step()
        entered.append(name)
        desk.scheduler.abort(name)
    assert 1 <= entered.index("cold") <= 8


def test_twin_waits_when_its_prefix_is_being_computed() -> None:
    """The same new prefix is computed once; the second starts from the cache."""
    desk = Desk(budget=256)
    prefix = list(range(100, 196))
    desk.add("first", [*prefix, 1])
    twin = desk.add("twin", [*prefix, 2])
    desk.add("other", [3, 4])
    assert desk.step() == {"first": 97, "other": 2}
    assert desk.step() == {"first": 1, "other": 1, "twin": 1}
    assert twin.num_cached_tokens == 96


def test_twin_does_not_wait_when_little_is_shared() -> None:
    """A step spent waiting costs more than a few tokens computed twice."""
    desk = Desk(budget=256)
    desk.add("first", [*range(100, 120), 1])
    desk.add("twin", [*range(100, 120), 2])
    assert desk.step() == {"first": 21, "twin": 21}


def test_twin_does_not_wait_when_the_beginning_of_a_block_is_cached() -> None:
    """What would be copied anyway is not worth waiting for."""
    desk = Desk(budget=256)
    prefix = list(range(100, 132))
    visit(desk.cache, prefix[:3])
    desk.add("first", [*prefix, 1])
    desk.add("twin", [*prefix, 2])
    assert desk.step() == {"first": 30, "twin": 30}


def test_twin_goes_on_alone_when_the_first_is_aborted() -> None:
    """Waiting for somebody ends with them."""
    desk = Desk(budget=32)
    prefix = list(range(100, 180))
    desk.add("first", [*prefix, 1])
    desk.add("twin", [*prefix, 2])
    desk.step()
    desk.scheduler.abort("first")
    assert desk.step() == {"twin": 32}
    assert desk.pool.count_by_state()["active"] == 21


def test_youngest_gives_way_when_the_pool_runs_out() -> None:
    """Preemption keeps tokens, frees blocks, and the elder is never stopped."""
    desk = Desk(num_blocks=5, budget=64)
    elder, younger = desk.add("elder", blocks_of(1, 2)[:-1]), desk.add("younger", blocks_of(3, 4))
    assert set(desk.step()) == {"elder", "younger"}
    assert set(desk.step()) == {"elder", "younger"}
    plans = [desk.step() for _ in range(4)]
    assert all("elder" in plan for plan in plans)
    assert desk.scheduler.waiting == [younger]
    assert not younger.block_table
    assert younger.token_ids[8:] == [7] * (len(younger.token_ids) - 8)
    assert len(younger.token_ids) > 8
    desk.scheduler.finish(elder)
    while younger in desk.scheduler.waiting:
        desk.step()
    assert younger.num_cached_tokens == 0, "what the first admission found is what counts"
