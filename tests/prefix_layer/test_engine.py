"""Whole engine over a tiny random model: sharing, concurrency, ends, failures."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from prefix_layer.engine import Engine
from prefix_layer.messages import Generate, Sampling
from tests.prefix_layer.driving import (
    drive,
    greedy,
    load_reference,
    make_engine,
    next_logits,
    reference_greedy,
    solo,
    tokens,
)

BLOCK_SIZE = 4


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Compare slots nobody wrote too, in which anything may stand, NaN as well."""
    return torch.equal(a.view(torch.int32), b.view(torch.int32))


def test_generated_tokens_are_cached_when_a_chat_goes_on(engine: Engine) -> None:
    """The next turn finds prompt and answer; only what was never fed is missing."""
    prompt = tokens(10)
    answer = solo(engine, prompt, 11)
    following = solo(engine, [*prompt, *answer.token_ids, 5], 2)
    assert following.num_cached_tokens == 10 + 11 - 1


def test_one_token_is_computed_when_everything_is_cached(engine: Engine) -> None:
    """A full hit still computes the last token, and says so."""
    prompt = tokens(4 * BLOCK_SIZE)
    cold = solo(engine, prompt)
    warm = solo(engine, prompt)
    assert warm.token_ids == cold.token_ids
    assert warm.num_cached_tokens == len(prompt) - 1
    longer = solo(engine, [*prompt, 9])
    assert longer.num_cached_tokens == 4 * BLOCK_SIZE


def test_stored_blocks_never_change_when_others_build_on_them(
    engine: Engine, cold_engine: Engine
) -> None:
    """Continuations of a shared prefix don't touch it, and no tail leaks into another (E03)."""
    prefix, x, y = tokens(48, 1), tokens(20, 2), tokens(20, 3)
    expected = {
        name: solo(cold_engine, prompt, 20).token_ids
        for name, prompt in {"px": prefix + x, "py": prefix + y, "short": prefix[:40] + y}.items()
    }
    assert solo(engine, prefix + x, 20).token_ids == expected["px"]
    shared = list(engine._pool.index)
    stored = [
        [part.clone() for part in engine._kv.block(block.block_id, BLOCK_SIZE)] for block in shared
    ]
    hashes = [block.block_hash for block in shared]
    for prompt, name in [(prefix + y, "py"), (prefix + x, "px"), (prefix[:40] + y, "short")]:
        answer = solo(engine, prompt, 20)
        assert answer.token_ids == expected[name]
        assert answer.num_cached_tokens >= 40
    both = drive(engine, [greedy("px", prefix + x, 20), greedy("py", prefix + y, 20)])
    assert {name: both[name].token_ids for name in both} == {n: expected[n] for n in both}
    for block, parts, own_hash in zip(shared, stored, hashes, strict=True):
        assert block.block_hash == own_hash
        now = engine._kv.block(block.block_id, BLOCK_SIZE)
        assert all(same_bits(a, b) for a, b in zip(parts, now, strict=True))


def test_attended_length_is_the_own_one_when_a_match_is_partial(
    engine: Engine, cold_engine: Engine
) -> None:
    """Logits after P[:40]+Y are those of a cold run, whatever followed P[:40] before (E03)."""
    prefix, x, y = tokens(48, 1), tokens(20, 2), tokens(20, 3)
    solo(engine, prefix + x, 20)
    warm, cold = next_logits(engine, prefix[:40] + y), next_logits(cold_engine, prefix[:40] + y)
    torch.testing.assert_close(warm, cold, atol=1e-4, rtol=1e-4)


def test_foreign_kv_is_never_used_when_all_hashes_collide(
    engine: Engine, cold_engine: Engine
) -> None:
    """With a constant hash the second prompt is computed from nothing (E01)."""
    engine._pool.index._hash_block = lambda _parent, _tokens: bytes(32)
    a, b = tokens(13, 1), tokens(13, 2)
    solo(engine, a)
    answer = solo(engine, b)
    assert answer.num_cached_tokens == 0
    assert answer.token_ids == solo(cold_engine, b).token_ids


def test_answers_are_the_solo_ones_when_a_shared_prefix_meets_a_batch(
    engine: Engine, cold_engine: Engine, tiny_llama: Path
) -> None:
    """Six variants of one prompt at once, cold and warm, then mixed with strangers (E07)."""
    prefix = tokens(90, 1)
    prompts = {f"q{i}": [*prefix, *tokens(5, 10 + i)] for i in range(6)}
    strangers = {f"new{i}": tokens(70, 20 + i) for i in range(3)}
    expected = {
        name: solo(cold_engine, prompt, 12).token_ids
        for name, prompt in (prompts | strangers).items()
    }
    for _ in range(2):
        answers = drive(engine, [greedy(name, p, 12) for name, p in prompts.items()])
        assert {name: a.token_ids for name, a in answers.items()} == {
            n: expected[n] for n in answers
        }
    assert all(a.num_cached_tokens >= 88 for a in answers.values())
    mix = strangers | {name: prompts[name] for name in ("q0", "q1", "q2")}
    answers = drive(engine, [greedy(name, p, 12) for name, p in mix.items()])
    assert {name: a.token_ids for name, a in answers.items()} == {n: expected[n] for n in mix}
    assert answers["q0"].num_cached_tokens < len(prompts["q0"])


def test_copies_compute_their_prompt_once_when_they_arrive_together(
    engine: Engine, cold_engine: Engine
) -> None:
    """Eight identical requests on a cold cache give one text for the price of one prompt (E07)."""
    prompt = tokens(100, 4)
    answers = drive(engine, [greedy(str(i), prompt, 12) for i in range(8)])
    expected = solo(cold_engine, prompt, 12).token_ids
    assert all(answer.token_ids == expected for answer in answers.values())
    assert engine.stats("").tokens_by_source["device"] == 7 * 99
    assert sorted(a.num_cached_tokens for a in answers.values()) == [0] + 7 * [99]


def test_positions_start_behind_the_prefix_when_it_is_adopted(engine: Engine) -> None:
    """A warm prompt feeds only its rest, at the positions it has in the prompt (E07)."""
    prompt = tokens(30, 5)
    solo(engine, prompt, 1)
    seen = []
    model = engine._model.module
    hook = model.register_forward_pre_hook(
        lambda _module, _args, kwargs: seen.append(kwargs["position_ids"].tolist()),
        with_kwargs=True,
    )
    try:
        solo(engine, prompt, 1)
    finally:
        hook.remove()
    assert seen == [[[29]]]


def test_text_equals_the_models_own_when_decoded_alone(engine: Engine, tiny_llama: Path) -> None:
    """Greedy text is that of full forward passes through transformers."""
    reference = load_reference(tiny_llama)
    prompt = tokens(23, 8)
    assert solo(engine, prompt, 30).token_ids == reference_greedy(reference, prompt, 30)


def test_generation_ends_when_a_stop_token_or_the_limit_comes(engine: Engine) -> None:
    """A stop token is emitted last; max_tokens and the context end with length."""
    prompt = tokens(12, 9)
    free = solo(engine, prompt, 20).token_ids
    stop = free[6]
    stopped = solo(engine, prompt, 20, stop_token_ids=[stop])
    assert stopped.token_ids == free[: free.index(stop) + 1]
    assert stopped.finish_reason == "stop"
    full = solo(engine, tokens(250, 10), 20)
    assert (len(full.token_ids), full.finish_reason) == (6, "length")


def test_logprobs_come_with_every_token_when_asked_for(engine: Engine) -> None:
    """One entry per token, best first, the chosen one among them when greedy."""
    answer = solo(engine, tokens(9, 11), 5, num_logprobs=3)
    assert [entry.token_id for entry in answer.logprobs] == answer.token_ids
    for entry in answer.logprobs:
        assert entry.top[0] == (entry.token_id, entry.logprob)
        values = [value for _, value in entry.top]
        assert values == sorted(values, reverse=True)
        assert len(values) == 3
    assert solo(engine, tokens(9, 11), 5).logprobs == []


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (greedy("r", []), "engine_error", "empty"),
        (greedy("r", [1] * 256), "prompt_too_long", "256 tokens, the context 256"),
        (greedy("r", [1, 320]), "engine_error", "0..319"),
        (greedy("r", [-1]), "engine_error", "0..319"),
        (greedy("r", [1], 0), "engine_error", "max_tokens"),
        (greedy("r", [1], logit_bias={320: 1.0}), "engine_error", "logit_bias"),
    ],
)
def test_command_fails_at_once_when_it_can_never_run(
    engine: Engine, command: Generate, code: str, message: str
) -> None:
    """What would break a step or wait for ever is refused by `add`, and leaves nothing behind."""
    failed = engine.add(command)
    assert failed is not None
    assert failed.code == code
    assert message in failed.message
    assert not engine.has_work


def test_counters_add_up_when_requests_have_passed(engine: Engine) -> None:
    """Computed and reused tokens account for every prompt and generated token."""
    prompt = tokens(16, 3)
    for _ in range(2):
        solo(engine, prompt, 5)
    stats = engine.stats("id")
    assert stats.request_id == "id"
    assert stats.tokens_by_source == {"device": 15, "computed": 2 * (16 + 5 - 1) - 15}
    held = stats.blocks_by_state["cached"] * BLOCK_SIZE
    assert stats.bytes_by_tier == {"device": held * 3 * 2 * 2 * 8 * 4}
    assert (stats.num_waiting, stats.num_running) == (0, 0)


def test_salts_separate_when_prompts_are_equal(engine: Engine) -> None:
    """Another tenant's identical prompt is computed anew."""
    prompt = tokens(20, 6)
    for salt, cached in [(b"a", 0), (b"b", 0), (b"a", 19)]:
        sampling = Sampling(max_tokens=2, temperature=0.0)
        answer = drive(engine, [Generate("r", prompt, sampling, salt)])["r"]
        assert answer.num_cached_tokens == cached


def test_fingerprint_is_the_same_when_the_engine_restarts(
    tiny_llama: Path, make_tiny: Callable[..., Path]
) -> None:
    """It names the model, not the process; other weights have another name."""
    from transformers import LlamaConfig  # noqa: PLC0415

    names = {make_engine(tiny_llama).ready.model_fingerprint for _ in range(2)}
    assert len(names) == 1
    other = make_engine(make_tiny(LlamaConfig, initializer_range=0.5)).ready.model_fingerprint
    assert other not in names
