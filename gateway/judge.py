"""A verifier that asks a model: may one answer serve both texts, yes or no?

The probability is read from the model's first token; the instructions are the same each time, so a
local model has them in its prefix cache. Knows no cache.
"""

import asyncio
import math
from collections.abc import Sequence
from contextlib import aclosing
from hashlib import blake2b
from typing import Any, cast

from gateway.backends.base import Delta, TokenLogprob, TopLogprob, Work
from gateway.backends.routing import Backends
from gateway.errors import StrataError
from semantic_layer import Pair, VerifierFailed

SALT = b"strata-judge"
INSTRUCTIONS = (
    "You compare two requests to an assistant. Answer yes if one and the same answer is fully "
    "right for both, although they are worded differently. Answer no if they differ in anything "
    "that changes the right answer: a number, date, name, place, product, person, negation, "
    "direction, group of people, language, format, or what is asked about the thing. "
    "Answer with one word: yes or no."
)
_TOP_LOGPROBS = 20
_LEAST_MASS = 0.2  # of "yes" and "no" together; with less the model did not answer the question
_MOST_CHARACTERS = 4_000


class JudgeVerifier:
    """Asks a model served here about each pair, all at once; see `semantic_layer.Verifier`."""

    asks_model = True

    def __init__(self, backends: Backends, model: str) -> None:
        digest = blake2b(INSTRUCTIONS.encode(), digest_size=4).hexdigest()
        self.fingerprint = f"judge:{model}:{digest}"
        self._backends = backends
        self._model = model

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be judged."""
        return len(text) <= _MOST_CHARACTERS

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of "yes" for each pair.

        Raises:
            VerifierFailed: the model is not served, broke, or did not say yes or no.
        """
        try:
            return list(await asyncio.gather(*(self._score(*pair) for pair in pairs)))
        except StrataError as error:
            raise VerifierFailed(f"{self._model} cannot judge: {error}") from error

    async def close(self) -> None:
        """Do nothing: the backends are closed by who opened them."""

    async def _score(self, asked: str, stored: str) -> float:
        found = self._backends.find(self._model)
        if found is None:
            raise VerifierFailed(f"no model {self._model} is served here")
        body = {
            **instructed(self._model),
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": _TOP_LOGPROBS,
        }
        question = f"First request: {stored}\n\nSecond request: {asked}\n\nSame answer?"
        body["messages"].append({"role": "user", "content": question})
        work = Work("judge", self._model, body, SALT)
        stream = cast("Any", self._backends.stream(found[0], work))
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event, Delta) and event.logprobs:
                    return probability_of_yes(event.logprobs[0])
        raise VerifierFailed(f"{self._model} gives no logprobs")


def instructed(model: str) -> dict[str, Any]:
    """Return the start of every request to the judge: what is worth pinning."""
    return {"model": model, "messages": [{"role": "system", "content": INSTRUCTIONS}]}


def probability_of_yes(first: TokenLogprob) -> float:
    """Return the share of "yes" among yes and no at the first token.

    Raises:
        VerifierFailed: neither is likely.
    """
    said = {"yes": 0.0, "no": 0.0}
    options: Sequence[TokenLogprob | TopLogprob] = first.top_logprobs or [first]
    for option in options:
        word = option.token.strip().strip(".,!\"'*").lower()
        if word in said:
            said[word] += math.exp(option.logprob)
    if sum(said.values()) < _LEAST_MASS:
        raise VerifierFailed(f"the judge said {first.token.strip()!r}, not yes or no")
    return said["yes"] / sum(said.values())
