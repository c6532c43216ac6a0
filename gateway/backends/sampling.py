"""The part of a chat request that says how to generate, read for the local engine. Pure.

Ranges are OpenAI's; ``top_k`` is the usual extension. Defaults are the API's: temperature 1, top_p
1, one choice. What this backend cannot do yet is refused with code ``unsupported``.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.errors import BadRequest
from prefix_layer import Grammar, Sampling

MAX_CHOICES = 128
MAX_STOPS = 4
MAX_TOP_LOGPROBS = 20
_SMALLEST_TOP_P = 1e-6
_INT64 = 2**63
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")  # OpenAI's; all the same here
_NEUTRAL = {  # fields of other engines that would change an answer, with the value that doesn't
    "min_p": 0,
    "min_tokens": 0,
    "repetition_penalty": 1,
    "length_penalty": 1,
    "ignore_eos": False,
    "use_beam_search": False,
}
NEUTRAL = {"presence_penalty": 0, "frequency_penalty": 0, **_NEUTRAL}  # as if they were not there


@dataclass(frozen=True, slots=True)
class Wish:
    """How to generate. ``max_tokens`` is None where the request leaves it open."""

    num_choices: int
    stops: tuple[str, ...]
    max_tokens: int | None
    sampling: Sampling

    def of_choice(self, index: int, max_tokens: int, grammar: Grammar | None = None) -> Sampling:
        """Return one choice's sampling: choice 0 has the seed asked for, others derived ones."""
        seed = self.sampling.seed
        if seed is not None and index:
            digest = hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=8).digest()
            seed = int.from_bytes(digest, "little") >> 1
        return msgspec.structs.replace(
            self.sampling, max_tokens=max_tokens, seed=seed, grammar=grammar
        )


def refuse_unsupported(body: dict[str, Any]) -> None:
    """Refuse what the local model cannot do yet, and an effort that nobody knows.

    Raises:
        BadRequest: names the field; code ``unsupported`` where it is one of the API's values.
    """
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in _EFFORTS:
        allowed = ", ".join(_EFFORTS)
        raise BadRequest(
            f"reasoning_effort: {str(effort)[:40]!r} is none of {allowed}", param="reasoning_effort"
        )
    for name, neutral in _NEUTRAL.items():
        if body.get(name) not in (None, neutral):
            raise _unsupported(name)
    if body.get("audio") or any(kind != "text" for kind in body.get("modalities") or []):
        raise _unsupported("modalities")


def read_wish(body: dict[str, Any], *, vocab_size: int, stop_ids: Collection[int]) -> Wish:
    """Read how to generate.

    Raises:
        BadRequest: a value is malformed or out of range; names the field.
    """
    return Wish(
        num_choices=_integer(body, "n", 1, MAX_CHOICES) or 1,
        stops=_stops(body.get("stop")),
        max_tokens=_max_tokens(body),
        sampling=Sampling(
            max_tokens=1,
            temperature=_number(body, "temperature", 0, 2, 1.0),
            top_p=max(_number(body, "top_p", 0, 1, 1.0), _SMALLEST_TOP_P),
            top_k=_integer(body, "top_k", 0, _INT64) or 0,
            seed=_integer(body, "seed", -_INT64, _INT64 - 1),
            presence_penalty=_number(body, "presence_penalty", -2, 2, 0.0),
            frequency_penalty=_number(body, "frequency_penalty", -2, 2, 0.0),
            logit_bias=_logit_bias(body.get("logit_bias"), vocab_size),
            stop_token_ids=sorted(stop_ids),
            num_logprobs=_num_logprobs(body),
        ),
    )


def _max_tokens(body: dict[str, Any]) -> int | None:
    newer = _integer(body, "max_completion_tokens", 1, _INT64)
    older = _integer(body, "max_tokens", 1, _INT64)
    return older if newer is None else newer


def _num_logprobs(body: dict[str, Any]) -> int | None:
    asked = body.get("logprobs")
    if asked is not None and not isinstance(asked, bool):
        raise BadRequest("logprobs must be true or false", param="logprobs")
    num_top = _integer(body, "top_logprobs", 0, MAX_TOP_LOGPROBS)
    if num_top and not asked:
        raise BadRequest("top_logprobs needs logprobs to be true", param="top_logprobs")
    return (num_top or 0) if asked else None


def _stops(stop: Any) -> tuple[str, ...]:
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(text, str) and text for text in stops):
        raise BadRequest("stop must be a non-empty string or a list of them", param="stop")
    if len(stops) > MAX_STOPS:
        raise BadRequest(f"stop has {len(stops)} strings, at most {MAX_STOPS}", param="stop")
    return tuple(stops)


def _logit_bias(bias: Any, vocab_size: int) -> dict[int, float]:
    if bias is None:
        return {}
    if not isinstance(bias, dict):
        raise BadRequest("logit_bias must map token ids to numbers", param="logit_bias")
    return {
        _token_id(key, vocab_size): _number(bias, key, -100, 100, 0.0, field=f"logit_bias[{key!r}]")
        for key in bias
    }


def _token_id(key: Any, vocab_size: int) -> int:
    text = str(key)
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) < vocab_size):  # noqa: PLR2004
        raise BadRequest(
            f"logit_bias names {text[:40]!r}: keys are token ids from 0 to {vocab_size - 1}",
            param="logit_bias",
        )
    return int(text)


def _integer(body: dict[str, Any], field: str, low: int, high: int) -> int | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadRequest(
            f"{field} must be an integer of at least {low} and at most {high}", param=field
        )
    return value


def _number(
    body: dict[str, Any],
    key: str,
    low: float,
    high: float,
    default: float,
    *,
    field: str | None = None,
) -> float:
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        named = field or key
        raise BadRequest(f"{named} must be a number from {low} to {high}", param=named)
    return float(value)


def _unsupported(field: str) -> BadRequest:
    return BadRequest(
        f"{field} is not supported by the local model yet", param=field, code="unsupported"
    )
