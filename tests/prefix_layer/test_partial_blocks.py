"""Reuse of a block's leading tokens: copied, never shared, and equal to computing them (E03)."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from prefix_layer.attention import Span
from prefix_layer.block import Block
from prefix_layer.engine import Engine
from prefix_layer.kv_cache import StepPlan
from tests.prefix_layer.driving import drive, greedy, make_engine, next_logits, solo
from tests.prefix_layer.test_architectures import MAKES

BLOCK_SIZE = 16
KINDS = ["llama", "mistral-window", "gemma3", "deepseek-mla"]

Checksum = dict[Block, tuple[bytes | None, list[Tensor]]]


def tokens(count: int, seed: int) -> list[int]:
    return random.Random(seed).choices(range(3, 300), k=count)


def stored(engine: Engine) -> Checksum:
    """Copy what all indexed blocks hold, up to their last token."""
    return {
        block: (
            block.block_hash,
            [
                part[: len(block.token_ids)].clone()
                for part in engine._kv.block(block.block_id, engine.ready.block_size)
            ],
        )
        for block in engine._pool.index
    }


def assert_unchanged(before: Checksum, after: Checksum) -> None:
    for block, (own_hash, parts) in before.items():
        if block in after and after[block][0] == own_hash:
            assert all(torch.equal(a, b) for a, b in zip(parts, after[block][1], strict=True))
        else:
            assert len(parts[0]) < BLOCK_SIZE, "a full block went"


def num_common(a: list[int], b: list[int]) -> int:
    short = min(len(a), len(b))
    return next((i for i in range(short) if a[i] != b[i]), short)


class Ledger:
    """What an engine could have reused, computed from the ids alone, beside what it did."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.num_shareable = 0
        self.num_reused = 0
        self._known: list[list[int]] = []

    def ask(self, prompts: list[list[int]], max_tokens: int) -> list[list[int]]:
        """Send prompts at once; each could share with all before it. Returns the answers."""
        start = len(self._known)
        for prompt in prompts:
            most = max((num_common(prompt, known) for known in self._known), default=0)
            self.num_shareable += min(most, len(prompt) - 1)
            self._known.append(prompt)
        commands = [greedy(str(i), prompt, max_tokens) for i, prompt in enumerate(prompts)]
        answers = list(drive(self.engine, commands).values())
        self.num_reused += sum(answer.num_cached_tokens for answer in answers)
        for i, answer in enumerate(answers):
            self._known[start + i] = [*prompts[i], *answer.token_ids[:-1]]
        return [answer.token_ids for answer in answers]

    @property
    def share(self) -> float:
        return self.num_reused / self.num_shareable


@pytest.fixture
def engine(tiny_llama: Path) -> Engine:
    return make_engine(tiny_llama, block_size=BLOCK_SIZE)


@pytest.fixture
def cold_engine(tiny_llama: Path) -> Engine:
    return make_engine(tiny_llama, block_size=BLOCK_SIZE, prefix_caching=False)


@pytest.fixture
def spans(engine: Engine) -> Iterator[list[Span]]:
    """Record the spans of every step."""
    seen: list[Span] = []
    begin = engine._kv.begin

    def watch(plan: StepPlan) -> None:
        seen.extend(plan.spans)
        begin(plan)

    engine._kv.begin = watch  # type: ignore[method-assign]
    yield seen
    engine._kv.begin = begin  # type: ignore[method-assign]


@pytest.mark.parametrize("kind", KINDS)
def test_answers_equal_cold_ones_when_prompts_part_inside_a_block(
    kind: str, make_tiny: Callable[..., Path]
) -> None:
    """At every position of a block: same logits, same text, all common tokens, sources intact."""
    config_class, settings = MAKES[kind]
    folder = make_tiny(config_class, **settings)
    warm = make_engine(folder, block_size=BLOCK_SIZE, kv_tokens=4096)
    cold = make_engine(folder, block_size=BLOCK_SIZE, prefix_caching=False)
    base = tokens(3 * BLOCK_SIZE, 1)
    solo(warm, base)
    for place in range(BLOCK_SIZE, 2 * BLOCK_SIZE):
        prompt = [*base[:place], base[place] + 1, *tokens(9, place)]
        before = stored(warm)
        answer = solo(warm, prompt)
        assert answer.num_cached_tokens == place
        assert_unchanged(before, stored(warm))
        assert answer.token_ids == solo(cold, prompt).token_ids
        other = [*base[:place], base[place] + 2, *tokens(9, place)]
        expected = next_logits(cold, other)
        torch.testing.assert_close(next_logits(warm, other), expected, atol=1e-4, rtol=1e-4)


def test_only_own_tokens_are_attended_to_when_a_block_is_reused_in_part(
    engine: Engine, cold_engine: Engine, spans: list[Span]
) -> None:
    """P[:40]+Y after P+X attends to 40+len(Y) positions, and no stored block changes (E03)."""
    prefix, x, y = tokens(48, 1), tokens(20, 2), tokens(20, 3)
    prompts = {"px": prefix + x, "py": prefix + y, "short": prefix[:40] + y}
    expected = {name: solo(cold_engine, prompt, 20).token_ids for name, prompt in prompts.items()}
    solo(engine, prompts["px"], 20)
    before = stored(engine)
    for name, num_cached in [("py", 48), ("px", 67), ("short", 40)]:
        spans.clear()
        answer = solo(engine, prompts[name], 20)
        assert answer.token_ids == expected[name]
        assert answer.num_cached_tokens == num_cached
        assert (spans[0].start, spans[0].end) == (num_cached, len(prompts[name]))
        assert sum(end - begin for begin, end in spans[0].runs) == len(prompts[name])
    both = drive(engine, [greedy(name, prompts[name], 20) for name in ("px", "py")])
    assert {name: both[name].token_ids for name in both} == {n: expected[n] for n in both}
    assert_unchanged(before, stored(engine))


@pytest.mark.parametrize("block_size", [1, 5, BLOCK_SIZE])
def test_one_token_is_computed_when_the_prompt_comes_again(
    tiny_llama: Path, block_size: int
) -> None:
    """Whatever the prompt's length, its repetition costs one token and gives the same logits."""
    engine = make_engine(tiny_llama, block_size=block_size)
    for length in range(1, 2 * BLOCK_SIZE + 3):
        prompt = tokens(length, length)
        cold = next_logits(engine, prompt)
        computed = engine.stats("").tokens_by_source["computed"]
        warm = next_logits(engine, prompt)
        assert engine.stats("").tokens_by_source["computed"] - computed == 1
        torch.testing.assert_close(warm, cold, atol=1e-4, rtol=1e-4)


def test_twins_have_own_copies_when_both_start_inside_one_block(
    engine: Engine, cold_engine: Engine
) -> None:
    """Two requests that copy from the same block in the same step don't meet in one."""
    base = tokens(2 * BLOCK_SIZE, 1)
    solo(engine, base)
    prompts = {name: [*base[:24], *tokens(3, seed)] for seed, name in enumerate("abc", 10)}
    answers = drive(engine, [greedy(name, prompt, 20) for name, prompt in prompts.items()])
    for name, prompt in prompts.items():
        assert answers[name].num_cached_tokens == 24
        assert answers[name].token_ids == solo(cold_engine, prompt, 20).token_ids


def test_nothing_wrong_is_kept_when_a_step_fails_before_its_copy(
    engine: Engine, cold_engine: Engine
) -> None:
    """An abort between admission and copy frees all blocks and indexes no uncopied KV."""
    base = tokens(2 * BLOCK_SIZE, 1)
    prompt = [*base[:28], 7]
    solo(engine, base)
    before = set(engine._pool.index)
    copy = engine._runner.copy
    engine._runner.copy = lambda _copies: (_ for _ in ()).throw(RuntimeError("boom"))  # type: ignore[method-assign]
    engine.add(greedy("a", prompt))
    with pytest.raises(RuntimeError, match="boom"):
        engine.step()
    engine._runner.copy = copy  # type: ignore[method-assign]
    engine.check_invariants()
    engine.abort("a")
    engine.check_invariants()
    assert engine.stats("").blocks_by_state["active"] == 0
    assert set(engine._pool.index) == before
    answer = solo(engine, prompt)
    assert answer.num_cached_tokens == 28
    assert answer.token_ids == solo(cold_engine, prompt).token_ids


def test_prompt_is_answered_when_no_room_is_left_for_a_source(tiny_llama: Path) -> None:
    """A prompt that needs the whole pool is computed, not refused, beside a block to copy from."""
    engine = make_engine(tiny_llama, block_size=BLOCK_SIZE, kv_tokens=3 * BLOCK_SIZE)
    prompt = tokens(3 * BLOCK_SIZE - 1, 1)
    first, second = solo(engine, prompt, 1), solo(engine, prompt, 1)
    assert second.token_ids == first.token_ids
    assert second.num_cached_tokens == 2 * BLOCK_SIZE


def test_text_is_whole_when_copies_meet_preemption(tiny_llama: Path, cold_engine: Engine) -> None:
    """Sequences that share odd lengths in a pool too small for all lose and repeat nothing."""
    small = make_engine(tiny_llama, kv_tokens=96, block_size=4)
    base = tokens(20, 1)
    prompts = {str(i): [*base[: 9 + 3 * i], *tokens(5, i)] for i in range(4)}
    for _ in range(3):
        answers = drive(small, [greedy(name, p, 30) for name, p in prompts.items()])
        for name, prompt in prompts.items():
            assert answers[name].token_ids == solo(cold_engine, prompt, 30).token_ids


def test_shareable_tokens_are_reused_when_chats_go_on(engine: Engine) -> None:
    """Three chats of six turns in turn: every token that could be reused is."""
    ledger = Ledger(engine)
    chats = {i: tokens(37, 1) for i in range(3)}
    for turn in range(6):
        for i, chat in chats.items():
            prompt = [*chat, *tokens(3 + 2 * i + turn, 10 * turn + i)]
            (answer,) = ledger.ask([prompt], 5 + turn)
            chats[i] = [*prompt, *answer]
    assert ledger.num_shareable > 1000
    assert ledger.share == 1


def test_shareable_tokens_are_reused_when_a_cold_burst_shares_a_prompt(
    tiny_llama: Path,
) -> None:
    """Eight short questions on one new prompt: it is computed once, to its last token."""
    ledger = Ledger(make_engine(tiny_llama, block_size=BLOCK_SIZE, max_batch_tokens=512))
    shared = tokens(151, 1)
    ledger.ask([[*shared, *tokens(3, i)] for i in range(8)], 4)
    assert ledger.num_reused == 7 * 151


def test_shareable_tokens_are_reused_when_a_prompt_is_shared(engine: Engine) -> None:
    """Questions on one long prompt, one by one and in bursts: at least 97% of what could be."""
    ledger = Ledger(engine)
    shared = tokens(151, 1)
    for burst in (1, 1, 4, 6, 8):
        prompts = [[*shared, *tokens(9 + i, 100 * burst + i)] for i in range(burst)]
        ledger.ask(prompts, 4)
    assert ledger.num_shareable > 2500
    assert ledger.share >= 0.97
