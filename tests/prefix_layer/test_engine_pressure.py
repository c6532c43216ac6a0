"""Engines short of blocks: preemption, aborts, sick steps; over a tiny random model."""

import random
from pathlib import Path

import pytest

from prefix_layer.engine import Engine
from prefix_layer.eviction import POLICIES
from tests.prefix_layer.driving import (
    Answer,
    drive,
    greedy,
    make_engine,
    record,
    solo,
    tokens,
)

BLOCK_SIZE = 4


def test_text_is_whole_when_sequences_are_preempted(tiny_llama: Path, cold_engine: Engine) -> None:
    """A pool too small for all loses no token and repeats none."""
    small = make_engine(tiny_llama, kv_tokens=100)
    prompts = {str(i): tokens(20, i) for i in range(4)}
    preempted = []
    preempt = small._scheduler._preempt
    small._scheduler._preempt = lambda s: (preempted.append(s.request_id), preempt(s))[1]  # type: ignore[method-assign]
    answers = drive(small, [greedy(name, p, 40) for name, p in prompts.items()])
    assert preempted, "the pool was not too small"
    for name, prompt in prompts.items():
        assert answers[name].token_ids == solo(cold_engine, prompt, 40).token_ids
        assert answers[name].finish_reason == "length"


def test_seeded_text_is_whole_when_sequences_are_preempted(
    tiny_llama: Path, cold_engine: Engine
) -> None:
    """Preemption does not disturb the draws of a seed."""
    small = make_engine(tiny_llama, kv_tokens=100)
    bent = {"temperature": 0.8, "seed": 3, "presence_penalty": 0.4}
    commands = [greedy(str(i), tokens(20, i), 40, **bent) for i in range(4)]
    answers = drive(small, commands)
    for command in commands:
        alone = solo(cold_engine, command.prompt, 40, **bent)
        assert answers[command.request_id].token_ids == alone.token_ids


@pytest.mark.parametrize("eviction", POLICIES)
def test_pool_is_intact_when_random_requests_are_aborted(tiny_llama: Path, eviction: str) -> None:
    """200 random requests, a third aborted at random: no block stays referenced."""
    chance = random.Random(7)
    engine = make_engine(tiny_llama, kv_tokens=256, eviction=eviction, max_sequences=6)
    prefixes = [tokens(n, n) for n in (8, 21, 40, 60)]
    answers: dict[str, Answer] = {}
    aborted: set[str] = set()
    pending = [str(i) for i in range(200)]
    while pending or engine.has_work:
        for _ in range(chance.randint(0, 3)):
            if pending:
                name = pending.pop()
                prompt = chance.choice(prefixes) + tokens(chance.randint(1, 30), int(name))
                command = greedy(name, prompt, chance.randint(1, 30), temperature=chance.random())
                answers[name] = Answer(failed=engine.add(command))
        record({n: a for n, a in answers.items() if n not in aborted}, engine.step())
        live = [n for n, a in answers.items() if a.finish_reason is None and n not in aborted]
        if live and chance.random() < 0.12:
            aborted.add(chance.choice(live))
            engine.abort(max(aborted, key=int))
            for name in aborted:
                engine.abort(name)
        engine.check_invariants()
    assert len(aborted) > 20
    assert all(a.finish_reason == "length" for n, a in answers.items() if n not in aborted)
    stats = engine.stats("")
    assert stats.blocks_by_state["active"] == 0
    assert sum(stats.blocks_by_state.values()) == stats.num_blocks == 64
    assert stats.evictions_by_tier["device"] > 0
    engine.reset()
    assert engine.stats("").blocks_by_state == {"free": 64, "cached": 0, "active": 0}


def test_prompt_fails_at_once_when_the_pool_can_never_hold_it(tiny_llama: Path) -> None:
    """A pool smaller than the context bounds the prompt, and says it is the pool."""
    engine = make_engine(tiny_llama, kv_tokens=40)
    assert engine.ready.context_length == 40
    failed = engine.add(greedy("r", tokens(40)))
    assert failed is not None
    assert failed.code == "kv_exhausted"
    answer = solo(engine, tokens(39), 5)
    assert (len(answer.token_ids), answer.finish_reason) == (1, "length")


def test_only_the_sick_sequence_fails_when_logits_are_not_finite(engine: Engine) -> None:
    """A row of NaN fails its own request and frees its blocks; the other one goes on."""
    run = engine._runner.run

    def sicken(chunks):  # noqa: ANN001, ANN202
        logits = run(chunks).clone()
        for row, chunk in zip(logits, chunks, strict=True):
            if chunk.sequence.request_id == "sick":
                row.fill_(float("nan"))
        return logits

    engine._runner.run = sicken  # type: ignore[method-assign]
    answers = drive(engine, [greedy("sick", tokens(9, 1)), greedy("well", tokens(9, 2))])
    assert answers["sick"].failed is not None
    assert answers["sick"].failed.code == "engine_error"
    assert answers["well"].finish_reason == "length"
    assert engine.stats("").blocks_by_state["active"] == 0


def test_engine_goes_on_when_a_step_raised(engine: Engine) -> None:
    """After an exception the sequences in flight can be aborted and nothing is lost."""
    run = engine._runner.run
    engine._runner.run = lambda _chunks: (_ for _ in ()).throw(RuntimeError("boom"))  # type: ignore[method-assign]
    engine.add(greedy("a", tokens(9)))
    with pytest.raises(RuntimeError, match="boom"):
        engine.step()
    engine._runner.run = run  # type: ignore[method-assign]
    engine.abort("a")
    engine.check_invariants()
    assert engine.stats("").blocks_by_state["active"] == 0
    assert solo(engine, tokens(9), 3).finish_reason == "length"
