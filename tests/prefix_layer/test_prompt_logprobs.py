"""Log-probabilities of a prompt: the model's own, however it is cut into steps and cached."""

from pathlib import Path

import pytest
import torch

from prefix_layer.engine import Engine
from prefix_layer.messages import Generate, TokenLogprob, Tokens
from tests.prefix_layer.driving import greedy, load_reference, make_engine, solo

PROMPT = [3 + (7 * i) % 300 for i in range(37)]


@pytest.fixture(scope="module")
def expected(tiny_llama: Path) -> torch.Tensor:
    """Log-probabilities of the tokens behind each position, ``(len(PROMPT), vocab_size)``."""
    with torch.inference_mode():
        logits = load_reference(tiny_llama)(input_ids=torch.tensor([PROMPT])).logits[0]
    return torch.log_softmax(logits.float(), dim=-1)


def run(engine: Engine, *commands: Generate) -> dict[str, list[Tokens]]:
    given: dict[str, list[Tokens]] = {}
    for command in commands:
        assert engine.add(command) is None
        given[command.request_id] = []
    while engine.has_work:
        for event in engine.step():
            assert isinstance(event, Tokens)
            given[event.request_id].append(event)
        engine.check_invariants()
    return given


def asked(name: str = "a", top: int = 2, max_tokens: int = 3) -> Generate:
    return greedy(name, PROMPT, max_tokens, num_prompt_logprobs=top)


def assert_right(found: list[TokenLogprob] | None, expected: torch.Tensor, top: int = 2) -> None:
    assert found is not None
    assert [entry.token_id for entry in found] == PROMPT[1:]
    for at, entry in enumerate(found):
        assert entry.logprob == pytest.approx(float(expected[at, PROMPT[at + 1]]), abs=1e-3)
        assert len(entry.top) == top
        best = expected[at].topk(top).values.tolist() if top else []
        assert [logprob for _, logprob in entry.top] == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("max_batch_tokens", [64, 10, 1])
def test_numbers_are_the_models_when_the_prompt_comes_in_chunks(
    tiny_llama: Path, expected: torch.Tensor, max_batch_tokens: int
) -> None:
    """Every token of the prompt but the first, once, with the first token of the answer."""
    engine = make_engine(tiny_llama, max_batch_tokens=max_batch_tokens)
    [first, *others] = run(engine, asked())["a"]
    assert_right(first.prompt_logprobs, expected)
    assert all(event.prompt_logprobs is None for event in others)


def test_nothing_is_skipped_when_the_prompt_is_cached(
    tiny_llama: Path, expected: torch.Tensor
) -> None:
    """A cached prefix has no logits to give, so it is computed anew, and shared as before."""
    engine = make_engine(tiny_llama)
    plain = solo(engine, PROMPT, 3)
    [first, *_] = events = run(engine, asked(top=0))["a"]
    assert_right(first.prompt_logprobs, expected, top=0)
    assert first.num_cached_tokens == 0
    assert [token_id for event in events for token_id in event.token_ids] == plain.token_ids
    assert solo(engine, PROMPT, 3).num_cached_tokens == len(PROMPT) - 1


def test_numbers_stay_right_when_sequences_are_preempted(
    tiny_llama: Path, expected: torch.Tensor
) -> None:
    """A pool too small for all of them: whoever starts anew gathers anew."""
    engine = make_engine(tiny_llama, kv_tokens=72, max_batch_tokens=16)
    commands = [asked(name, max_tokens=24) for name in ("a", "b", "c")]
    for events in run(engine, *commands).values():
        assert_right(events[0].prompt_logprobs, expected)
        assert sum(event.prompt_logprobs is not None for event in events) == 1


def test_prompt_of_one_token_has_none(tiny_llama: Path) -> None:
    """There is nothing before its only token."""
    engine = make_engine(tiny_llama)
    [first, *_] = run(engine, greedy("a", [5], 2, num_prompt_logprobs=1))["a"]
    assert first.prompt_logprobs == []
