"""A model as the verifier: the question it is asked, the probability read, and its failures."""

import math
from typing import Any

import pytest

from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob, TopLogprob, Usage
from gateway.backends.routing import Backends
from gateway.errors import BackendUnavailable
from gateway.judge import INSTRUCTIONS, JudgeVerifier, probability_of_yes
from semantic_layer import VerifierFailed
from tests.fakes.backends import FakeBackend

PAIR = ("How do I get a refund?", "What must I do to be refunded?")


def token(**shares: float) -> TokenLogprob:
    options = [TopLogprob(word, math.log(share)) for word, share in shares.items()]
    return TokenLogprob(options[0].token, options[0].logprob, top_logprobs=options)


def script(first: TokenLogprob | None) -> list[Event]:
    logprobs = [] if first is None else [first]
    return [Delta(text="yes", logprobs=logprobs), Finish(0, "length"), Final(Usage(9, 1))]


def judge(first: TokenLogprob | None = None, **options: Any) -> tuple[JudgeVerifier, FakeBackend]:
    backend = FakeBackend(script(first), **options)
    return JudgeVerifier(Backends([backend]), "m"), backend


async def test_score_is_the_share_of_yes_when_the_model_answers() -> None:
    """Spellings of yes and no are summed; other words do not count."""
    verifier, _ = judge(token(Yes=0.6, yes=0.2, No=0.1, Maybe=0.1))
    assert await verifier.scores([PAIR]) == [pytest.approx(0.8 / 0.9)]


async def test_question_holds_both_texts_behind_fixed_instructions() -> None:
    """The instructions come first and never change, so their prefix is computed once."""
    verifier, backend = judge(token(yes=0.9, no=0.1))
    await verifier.scores([PAIR, PAIR[::-1]])
    first, second = (work.body for work in backend.calls)
    assert first["messages"][0] == second["messages"][0]
    assert first["messages"][0]["content"] == INSTRUCTIONS
    assert all(text in first["messages"][1]["content"] for text in PAIR)
    assert first["messages"][1] != second["messages"][1]
    assert first["max_tokens"] == 1
    assert first["logprobs"] is True


@pytest.mark.parametrize("said", [None, token(Both=0.9, yes=0.05)])
async def test_score_fails_when_the_model_says_neither(said: TokenLogprob | None) -> None:
    """No logprobs, or another word, is no verdict."""
    verifier, _ = judge(said)
    with pytest.raises(VerifierFailed):
        await verifier.scores([PAIR])


async def test_score_fails_when_the_model_is_down_or_unknown() -> None:
    """A backend's error is the verifier's failure, which the cache takes for a miss."""
    verifier, _ = judge(error=BackendUnavailable("down"))
    with pytest.raises(VerifierFailed, match="down"):
        await verifier.scores([PAIR])
    unknown = JudgeVerifier(Backends([]), "m")
    with pytest.raises(VerifierFailed, match="m"):
        await unknown.scores([PAIR])


def test_probability_is_read_from_the_token_alone_when_there_are_no_others() -> None:
    """A backend that gives only the token's own logprob is enough when it is sure."""
    assert probability_of_yes(TokenLogprob(" Yes", math.log(0.7))) == 1.0


def test_fingerprint_changes_when_the_model_does() -> None:
    """Scores of two judges are never taken for each other's."""
    backends = Backends([])
    assert JudgeVerifier(backends, "a").fingerprint != JudgeVerifier(backends, "b").fingerprint
