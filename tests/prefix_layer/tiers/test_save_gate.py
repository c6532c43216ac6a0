"""KV is kept while somebody comes back for it, and no longer."""

from typing import Any

from prefix_layer.tiers.save_gate import SaveGate
from tests.prefix_layer.driving import solo
from tests.prefix_layer.tiers.test_engine_tiers import MakeEngine, make, tiers, tokens

__all__ = ["make", "tiers"]


def names(first: int, count: int) -> list[bytes]:
    return [i.to_bytes(4) for i in range(first, first + count)]


def test_gate_shuts_when_nothing_was_used() -> None:
    """So many blocks are tried, the rest are turned away."""
    gate = SaveGate(trial=3)
    assert [gate.lets_pass(name) for name in names(0, 5)] == [True] * 3 + [False] * 2
    assert not gate.is_open


def test_gate_opens_when_a_block_it_turned_away_is_looked_for() -> None:
    """One regret is enough; a stranger and a block long forgotten are none."""
    gate = SaveGate(trial=1, max_remembered=2)
    shut = names(0, 4)
    assert [gate.lets_pass(name) for name in shut] == [True, False, False, False]
    gate.looked_for(b"stranger")
    gate.looked_for(shut[1])
    assert not gate.is_open
    gate.looked_for(shut[3])
    assert gate.is_open


def test_gate_stays_open_when_blocks_come_back() -> None:
    """Every use buys another trial."""
    gate = SaveGate(trial=2)
    for name in names(0, 20):
        assert gate.lets_pass(name)
        gate.used()


def test_engine_stops_saving_when_no_prompt_repeats(
    make: MakeEngine, tiers: dict[str, Any]
) -> None:
    """New prompts alone stop being kept; repeats bring tiers and their hits back by themselves."""
    engine = make(**tiers)
    engine._tiers._gate = SaveGate(trial=60)  # type: ignore[union-attr]
    for seed in range(12):
        solo(engine, tokens(81, 100 + seed), 2)
    gate = engine._tiers._gate  # type: ignore[union-attr]
    assert not gate.is_open
    prompts = [tokens(81, seed) for _ in range(3) for seed in range(120, 123)]
    found = [solo(engine, prompt, 2).num_cached_tokens for prompt in prompts]
    assert gate.is_open
    assert found[:3] == [0, 0, 0]
    assert found[-3:] == [80, 80, 80]
