"""How to generate, read from a request: defaults, ranges, and what is refused."""

from typing import Any

import pytest

from gateway.backends.sampling import Wish, read_wish, refuse_unsupported
from gateway.errors import BadRequest
from prefix_layer import Sampling


def wish(**body: Any) -> Wish:
    return read_wish(body, vocab_size=100, stop_ids={9, 2})


def test_defaults_are_the_apis_when_nothing_is_said() -> None:
    """Silence and explicit nulls are the same."""
    fields = (
        "temperature top_p top_k seed presence_penalty frequency_penalty logit_bias logprobs"
        " top_logprobs stop n max_tokens max_completion_tokens"
    )
    expected = Wish(1, (), None, Sampling(1, stop_token_ids=[2, 9]))
    assert wish() == wish(**dict.fromkeys(fields.split())) == expected


def test_every_field_arrives_when_all_are_given() -> None:
    """Nothing that was asked for is dropped."""
    read = wish(
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        seed=-3,
        presence_penalty=-1,
        frequency_penalty=2,
        logit_bias={"28": -100, "0": 1.5},
        logprobs=True,
        top_logprobs=20,
        stop=["a", "b"],
        n=3,
        max_tokens=7,
    )
    assert read == Wish(
        3,
        ("a", "b"),
        7,
        Sampling(1, 0.5, 0.9, 5, -3, -1.0, 2.0, {28: -100.0, 0: 1.5}, [2, 9], 20),
    )


def test_stop_is_one_string_when_given_alone() -> None:
    """A string is a list of one."""
    assert wish(stop="END").stops == ("END",)


def test_newer_limit_counts_when_both_are_given() -> None:
    """max_completion_tokens replaces max_tokens."""
    assert wish(max_tokens=9, max_completion_tokens=5).max_tokens == 5


def test_seeds_differ_and_repeat_when_choices_share_one() -> None:
    """Choice 0 has the seed itself; the others' follow from it."""
    first, again = wish(n=3, seed=1), wish(n=3, seed=1)
    seeds = [first.of_choice(index, 10).seed for index in range(3)]
    assert seeds[0] == 1
    assert len(set(seeds)) == 3
    assert seeds == [again.of_choice(index, 10).seed for index in range(3)]
    assert wish(n=2).of_choice(1, 10).seed is None
    assert first.of_choice(2, 10).max_tokens == 10


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"frequency_penalty": -3}, "frequency_penalty"),
        ({"seed": 1.5}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"n": 0}, "n"),
        ({"n": 1000}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": 5}, "stop"),
        ({"logit_bias": {"100": 1}}, "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "logit_bias"),
        ({"logit_bias": {"hello": 1}}, "logit_bias"),
        ({"logit_bias": {"²": 1}}, "logit_bias"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"logit_bias": {"1": 101}}, "logit_bias['1']"),
        ({"logit_bias": {"1": "x"}}, "logit_bias['1']"),
        ({"logprobs": 5}, "logprobs"),
        ({"top_logprobs": 5}, "top_logprobs"),
        ({"logprobs": False, "top_logprobs": 5}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ],
)
def test_field_is_named_when_its_value_is_wrong(body: dict[str, Any], param: str) -> None:
    """A value out of range is a 400 that names its field."""
    with pytest.raises(BadRequest) as caught:
        wish(**body)
    assert caught.value.param == param


TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"modalities": ["text", "audio"]}, "modalities"),
    ],
)
def test_request_is_refused_when_the_model_cannot_do_it(body: dict[str, Any], param: str) -> None:
    """What is not there yet is a 400 with its own code."""
    with pytest.raises(BadRequest) as caught:
        refuse_unsupported(body)
    assert (caught.value.param, caught.value.code) == (param, "unsupported")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"tools": [], "tool_choice": None, "response_format": None, "modalities": None},
        {"tools": [TOOL], "tool_choice": "none"},
        {"tool_choice": "auto"},
        {"response_format": {"type": "text"}},
        {"modalities": ["text"]},
    ],
)
def test_request_passes_when_it_asks_for_plain_text(body: dict[str, Any]) -> None:
    """Asking for nothing special in many words is still asking for text."""
    refuse_unsupported(body)


@pytest.mark.parametrize(
    ("field", "value"),
    [("min_p", 0.1), ("min_tokens", -1), ("repetition_penalty", 1.2), ("ignore_eos", True)],
)
def test_field_is_named_when_the_local_model_would_ignore_it(field: str, value: object) -> None:
    """What would change an answer elsewhere is refused here, and its neutral value is not."""
    with pytest.raises(BadRequest) as caught:
        refuse_unsupported({field: value})
    assert (caught.value.param, caught.value.code) == (field, "unsupported")
    refuse_unsupported({"min_p": 0, "min_tokens": 0, "repetition_penalty": 1.0, "ignore_eos": None})
