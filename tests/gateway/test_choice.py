"""One choice: tokens in, deltas out, however the steps fall."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import TokenLogprob
from gateway.backends.choice import Choice
from gateway.backends.tokenizer import Tokenizer
from prefix_layer import TokenLogprob as EngineLogprob
from prefix_layer import Tokens

TEXT = "晚安🌙 café Ω e\u0301 你好👩\u200d🚀 and 17 boxes.\n\nThe end"
EOS = 2


@pytest.fixture(scope="module")
def tokenizer(bundled_chat_model: Path) -> Tokenizer:
    return Tokenizer(bundled_chat_model)


def steps(ids: Sequence[int], reason: str, cuts: Sequence[int] = ()) -> list[Tokens]:
    """Cut the ids into steps at ``cuts``; without any, one token a step."""
    bounds = sorted({0, len(ids), *(cut % len(ids) for cut in cuts)}) if cuts else None
    edges = bounds or list(range(len(ids) + 1))
    return [
        Tokens(
            "r",
            list(ids[start:end]),
            [EngineLogprob(i, -0.5, [(i, -0.5), (1, -2.0)]) for i in ids[start:end]],
            reason if end == len(ids) else None,  # type: ignore[arg-type]
        )
        for start, end in itertools.pairwise(edges)
    ]


def play(
    tokenizer: Tokenizer, script: list[Tokens], *stops: str
) -> tuple[str, list[TokenLogprob], Choice]:
    choice = Choice(0, tokenizer, stops)
    text, entries = "", []
    for tokens in script:
        delta = choice.push(tokens)
        if delta is not None:
            text += delta.text
            entries += delta.logprobs
        if choice.finish_reason is not None:
            break
    return text, entries, choice


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_text_entries_and_count_agree_when_nothing_stops_it(
    tokenizer: Tokenizer, reason: str
) -> None:
    """Every token has its entry, the bytes are the content, and the stop token is no part of it."""
    ids = tokenizer.encode(TEXT)
    script = steps([*ids, EOS] if reason == "stop" else ids, reason)
    text, entries, choice = play(tokenizer, script)
    assert text == TEXT
    assert choice.finish_reason == reason
    assert choice.num_tokens == len(entries) == len(ids)
    assert b"".join(bytes(entry.bytes or []) for entry in entries).decode() == TEXT


@given(
    cuts=st.lists(st.integers(1, 200), max_size=6),
    start=st.integers(0, len(TEXT) - 1),
    length=st.integers(1, 8),
)
def test_answer_does_not_depend_on_the_steps_when_a_stop_is_set(
    tokenizer: Tokenizer, cuts: list[int], start: int, length: int
) -> None:
    """However tokens are grouped, text, entries and reason are the same, and no stop text leaks."""
    stop = TEXT[start : start + length]
    ids = tokenizer.encode(TEXT)
    text, entries, choice = play(tokenizer, steps(ids, "length", cuts), stop)
    assert text == TEXT[: TEXT.find(stop)]
    assert choice.finish_reason == "stop"
    assert choice.num_tokens == len(entries)
    one_by_one = play(tokenizer, steps(ids, "length"), stop)
    assert (text, entries) == one_by_one[:2]
    spelled = b"".join(bytes(entry.bytes or []) for entry in entries)
    assert spelled.decode(errors="ignore") == text  # a token may hold the start of what was cut


def test_no_entry_is_lost_when_text_is_held_back(tokenizer: Tokenizer) -> None:
    """Text held for a stop string that never came goes out with its entries."""
    ids = tokenizer.encode("so it goes END")
    text, entries, choice = play(tokenizer, steps(ids, "length"), "ENDING", "goes END!")
    assert text == "so it goes END"
    assert len(entries) == choice.num_tokens == len(ids)
    assert choice.finish_reason == "length"


def test_entries_go_out_with_their_text_when_a_character_needs_several_tokens(
    tokenizer: Tokenizer,
) -> None:
    """The tokens of one character travel together with it."""
    ids = tokenizer.encode("🌙")
    assert len(ids) > 1
    choice = Choice(0, tokenizer, ())
    deltas = [choice.push(tokens) for tokens in steps(ids, "length")]
    assert deltas[:-1] == [None] * (len(ids) - 1)
    assert deltas[-1] is not None
    assert deltas[-1].text == "🌙"
    assert len(deltas[-1].logprobs) == len(ids)


def test_cut_character_is_replaced_when_the_limit_falls_inside_it(tokenizer: Tokenizer) -> None:
    """A character cut by max_tokens ends the text as U+FFFD, as decoding the ids does."""
    ids = tokenizer.encode("ok 🌙")[:-1]
    text, entries, choice = play(tokenizer, steps(ids, "length"))
    assert text == tokenizer.decode(ids) == "ok \ufffd"
    assert len(entries) == choice.num_tokens == len(ids)


def test_answer_is_empty_when_the_first_token_stops(tokenizer: Tokenizer) -> None:
    """An answer may say nothing."""
    text, entries, choice = play(tokenizer, steps([EOS], "stop"))
    assert (text, entries, choice.num_tokens, choice.finish_reason) == ("", [], 0, "stop")


def test_special_tokens_are_counted_and_silent_when_inside_an_answer(tokenizer: Tokenizer) -> None:
    """A special token that ends nothing has an entry with its name and no bytes."""
    ids = [*tokenizer.encode("a"), 1, *tokenizer.encode("b"), 1]
    text, entries, choice = play(tokenizer, steps(ids, "length"))
    assert text == "ab"
    assert choice.num_tokens == len(entries) == 4
    assert [entry.token for entry in entries] == ["a", "<|im_start|>", "b", "<|im_start|>"]
    assert b"".join(bytes(entry.bytes or []) for entry in entries) == b"ab"


@pytest.mark.parametrize(
    ("given_logprob", "shown"),
    [(-math.inf, -9999.0), (math.nan, -9999.0), (1e-9, 0.0), (-12345.0, -9999.0), (-1.5, -1.5)],
)
def test_logprobs_are_finite_and_not_positive_when_the_engine_gives_odd_ones(
    tokenizer: Tokenizer, given_logprob: float, shown: float
) -> None:
    """JSON knows no infinity."""
    logprob = EngineLogprob(100, given_logprob, [(101, given_logprob)])
    _, (entry,), _ = play(tokenizer, [Tokens("r", [100], [logprob], "length")])
    assert entry.logprob == entry.top_logprobs[0].logprob == shown
