"""Answers belong to the grammar they were asked in, whatever the model would rather say."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from prefix_layer.compiling import MAX_KEPT, Compiling, GrammarCompiler
from prefix_layer.engine import Engine
from prefix_layer.errors import BadGrammar
from prefix_layer.grammar_check import GrammarChecker
from prefix_layer.messages import Generate, Grammar, Sampling
from tests.prefix_layer.driving import Answer, drive, make_engine, record

EOS = 2
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "label": {"enum": ["a", "b"]}},
    "required": ["x", "label"],
    "additionalProperties": False,
}
CHOICES = [
    {"anyOf": [{"properties": {f"p{i}": {"const": j}}} for j in range(3)]} for i in range(12)
]


def schema(value: Any) -> Grammar:
    return Grammar("json_schema", json.dumps(value))


def ask(
    grammar: Grammar, request_id: str = "r", max_tokens: int = 200, **sampling: Any
) -> Generate:
    prompt = random.Random(request_id).choices(range(3, 250), k=9)
    settings = {"temperature": 0.0, "stop_token_ids": [EOS]} | sampling
    return Generate(request_id, prompt, Sampling(max_tokens, grammar=grammar, **settings))


@pytest.fixture(scope="module")
def engine(byte_llama: Path) -> Engine:
    return make_engine(byte_llama)


@pytest.fixture(scope="module")
def text_of(byte_llama: Path) -> Callable[[Answer], str]:
    tokenizer = Tokenizer.from_file(str(byte_llama / "tokenizer.json"))
    return lambda answer: tokenizer.decode(answer.token_ids)


def one(engine: Engine, command: Generate) -> Answer:
    return drive(engine, [command])[command.request_id]


def test_answer_is_the_schemas_when_the_model_is_random(
    engine: Engine, text_of: Callable[[Answer], str]
) -> None:
    """Random weights give an object with exactly the wanted members, ended by a stop token."""
    for seed in range(5):
        answer = one(engine, ask(schema(POINT), temperature=1.0, seed=seed))
        assert answer.finish_reason in ("stop", "length")
        if answer.finish_reason == "stop":
            value = json.loads(text_of(answer))
            assert answer.token_ids[-1] == EOS
            assert isinstance(value["x"], int)
            assert value["label"] in ("a", "b")


def test_no_model_step_is_spent_when_the_text_is_forced(
    engine: Engine, text_of: Callable[[Answer], str]
) -> None:
    """A constant needs no sampling at all, not even for its end."""
    before = engine.stats("").tokens_by_source["computed"]
    answer = one(engine, ask(schema({"const": {"city": "北京", "n": [1, None]}})))
    assert json.loads(text_of(answer)) == {"city": "北京", "n": [1, None]}
    assert answer.finish_reason == "stop"
    assert engine.stats("").tokens_by_source["computed"] == before


def test_every_token_has_its_entry_when_logprobs_are_asked_for(engine: Engine) -> None:
    """Forced tokens are computed then, so that each has a probability."""
    answer = one(engine, ask(schema(POINT), num_logprobs=2))
    assert [entry.token_id for entry in answer.logprobs] == answer.token_ids[: len(answer.logprobs)]
    assert len(answer.token_ids) - len(answer.logprobs) <= 1


def test_text_is_the_same_when_forced_tokens_are_computed(
    engine: Engine, text_of: Callable[[Answer], str]
) -> None:
    """Skipping the model where there is no choice changes nothing, as tokens are bytes here."""
    quick = one(engine, ask(schema(POINT)))
    slow = one(engine, ask(schema(POINT), num_logprobs=0))
    assert text_of(quick) == text_of(slow)


def test_seeded_text_is_the_same_when_logprobs_are_asked_for(engine: Engine) -> None:
    """Forced tokens take a draw each, as they do where the model is asked for them."""
    for seed in range(8):
        settings = {"temperature": 1.5, "seed": seed}
        plain, asked = (
            one(engine, ask(schema(POINT), **settings, num_logprobs=num)) for num in (None, 1)
        )
        assert plain.token_ids == asked.token_ids


@pytest.mark.parametrize("settings", [{}, {"kv_tokens": 96}, {"max_batch_tokens": 3}])
def test_batched_equals_alone_when_some_are_free_and_some_constrained(
    byte_llama: Path, settings: dict[str, int]
) -> None:
    """Masks, forced tokens, preemption and chunks of others don't reach a sequence's text."""
    grammars = [schema(POINT), schema({"type": "array", "items": {"type": "boolean"}})]
    grammars.append(Grammar("regex", "(ab|cd)+e"))
    commands = [ask(grammars[i % 3], f"g{i}", 24) for i in range(5)]
    commands += [
        Generate(f"f{i}", random.Random(i).choices(range(3, 250), k=12), Sampling(24, 0.0))
        for i in range(3)
    ]
    batched = drive(make_engine(byte_llama, **settings), commands)
    alone = make_engine(byte_llama, prefix_caching=False)
    for command in commands:
        assert batched[command.request_id].token_ids == one(alone, command).token_ids


def test_warm_equals_cold_when_a_constrained_prompt_comes_again(engine: Engine) -> None:
    """A prefix hit changes the cost, not the answer."""
    command = ask(schema({"type": "array", "items": {"enum": ["x", "yy"]}}), "warm", 40)
    cold = one(engine, command)
    warm = one(engine, command)
    assert warm.num_cached_tokens > cold.num_cached_tokens
    assert warm.token_ids == cold.token_ids


def test_limit_ends_it_when_the_text_is_unfinished(engine: Engine) -> None:
    """max_tokens counts forced tokens too."""
    answer = one(engine, ask(schema({"const": "a long constant"}), max_tokens=5))
    assert answer.finish_reason == "length"
    assert len(answer.token_ids) == 5


def test_nothing_is_said_when_only_the_empty_text_matches(engine: Engine) -> None:
    """An empty language member is an answer: a stop token alone."""
    answer = one(engine, ask(Grammar("regex", "")))
    assert answer.token_ids == [EOS]
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize(
    ("grammar", "fault"),
    [
        (schema({"type": "object", "not": {}}), "not"),
        (schema({"type": "array", "uniqueItems": True}), "uniqueItems"),
        (schema({"type": "string", "format": "binary"}), "binary"),
        (schema({"$ref": "#"}), "no text matches it"),
        (schema({"$ref": "http://example.com/x"}), "example.com"),
        (Grammar("regex", "(a"), "unclosed group"),
        (Grammar("lark", "begin: /a/"), "start"),
        (Grammar("json_schema", "7"), "object"),
        (Grammar("json_schema", "{"), ""),
        (schema({"allOf": CHOICES}), "too large"),
    ],
)
def test_sequence_fails_with_the_fault_named_when_its_grammar_is_bad(
    engine: Engine, grammar: Grammar, fault: str
) -> None:
    """Only this sequence ends; the message says what is wrong."""
    bad, good = ask(grammar, "bad"), ask(schema(POINT), "good", 8)
    answers = drive(engine, [bad, good])
    failed = answers["bad"].failed
    assert failed is not None
    assert failed.code == "bad_grammar"
    assert fault in failed.message
    assert "\n" not in failed.message
    assert answers["good"].finish_reason is not None


def test_sequence_is_refused_when_nothing_can_end_it(engine: Engine) -> None:
    """A grammar without stop tokens has no way to say that the text is complete."""
    failed = engine.add(ask(schema(POINT), stop_token_ids=[]))
    assert failed is not None
    assert "stop_token_ids" in failed.message


def test_sequence_fails_when_its_turn_to_compile_does_not_come(byte_llama: Path) -> None:
    """Waiting for a compiler that others keep busy comes to an end."""
    engine = make_engine(byte_llama)
    engine._compiling = Compiling(GrammarCompiler(byte_llama, 320), timeout_s=0.0)
    answers = drive(
        engine, [ask(schema(POINT), "slow"), Generate("free", [5, 6], Sampling(4, 0.0))]
    )
    failed = answers["slow"].failed
    assert failed is not None
    assert "not compiled within" in failed.message
    assert answers["free"].finish_reason == "length"


def chain(length: int) -> Grammar:
    links = {
        f"d{i}": {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(length)
    }
    links[f"d{length}"] = {"type": "null"}
    return schema({"$ref": "#/$defs/d0", "$defs": links})


@pytest.mark.parametrize(
    ("hostile", "fault"),
    [
        (schema({"type": "integer", "multipleOf": 99_999_989}), "longer than 1 s"),
        (schema({"allOf": [{"type": "string", "pattern": f"a{i}"} for i in range(300)]}), "1 s"),
        (chain(6000), "too deeply"),
        (Grammar("lark", "start: " + "(" * 9000 + '"a"' + ")" * 9000), "deeply"),
    ],
    ids=["slow", "slow patterns", "deep", "parentheses"],
)
def test_grammar_is_refused_when_it_would_hang_or_crash_the_engine(
    byte_llama: Path, hostile: Grammar, fault: str
) -> None:
    """Another process pays for it; the next grammar finds a new one."""
    checker = GrammarChecker(byte_llama, 320, timeout_s=1.0)
    with pytest.raises(BadGrammar, match=fault):
        checker.check(hostile)
    checker.check(schema(POINT))


def test_nothing_is_left_when_a_sequence_is_aborted_while_compiling(byte_llama: Path) -> None:
    """An abort finds a sequence wherever it waits."""
    engine = make_engine(byte_llama)
    engine.add(ask(schema(POINT), "gone"))
    assert engine.has_work
    engine.abort("gone")
    assert not engine.has_work


def test_nothing_is_left_when_a_sequence_is_aborted_while_running(engine: Engine) -> None:
    """Its mask, when under way, is nobody's."""
    engine.add(ask(Grammar("regex", "[a-z]+"), "gone"))
    answers = {"gone": Answer()}
    while not answers["gone"].token_ids:
        record(answers, engine.step())
    engine.abort("gone")
    assert not engine.has_work
    engine.check_invariants()


def test_compiled_grammars_are_bounded_when_many_come(byte_llama: Path) -> None:
    """The least recently used one goes first."""
    compiler = GrammarCompiler(byte_llama, 320)
    for number in range(MAX_KEPT + 5):
        compiler.compile(Grammar("regex", f"a{{{number}}}")).result()
    assert len(compiler._kept) == MAX_KEPT
