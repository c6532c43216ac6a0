"""The seam between the pipeline and whatever generates: requests in, events out.

A backend knows nothing of caches and HTTP responses. It raises an error of `gateway.errors` before
its first event where the request itself is at fault, so the caller still gets a proper status.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from gateway.backends.prices import Prices

LOWEST_LOGPROB = -9999.0  # OpenAI's stand-in for minus infinity


class TopLogprob(msgspec.Struct, frozen=True):
    """One alternative of a token position."""

    token: str
    logprob: float
    bytes: list[int] | None = None


class TokenLogprob(msgspec.Struct, frozen=True):
    """OpenAI's logprobs entry for one emitted token."""

    token: str
    logprob: float
    bytes: list[int] | None = None
    top_logprobs: list[TopLogprob] = []


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one request over all its choices; cached ones are part of the prompt's.

    ``details`` are an upstream's further counts, in its own shape, relayed unread.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    details: dict[str, Any] = {}

    def detail(self, name: str) -> dict[str, Any]:
        """Return one object of the further counts; empty where an upstream gave none."""
        given = self.details.get(name)
        return given if isinstance(given, dict) else {}


class Delta(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """More of one choice.

    Fields we relay without reading them: ``extra`` of the delta, ``choice_extra`` of the choice
    beside it, ``answer_extra`` of the whole answer.
    """

    index: int = 0
    text: str = ""
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] = []
    logprobs: list[TokenLogprob] = []
    extra: dict[str, Any] = {}
    refusal_logprobs: list[TokenLogprob] = []
    choice_extra: dict[str, Any] = {}
    answer_extra: dict[str, Any] = {}


class Finish(msgspec.Struct, frozen=True, tag=True):
    """One choice is complete; ``reason`` is the API's finish_reason (stop, length, tool_calls…).

    ``stop`` is the stop string that ended it, where the backend tells.
    """

    index: int
    reason: str
    stop: str | None = None


class Final(msgspec.Struct, frozen=True, tag=True):
    """The whole request is complete; always the last event, and only after every `Finish`.

    ``stand_in`` is the model that answered, when it is not the one that was asked.
    """

    usage: Usage
    stand_in: str | None = None


Event = Delta | Finish | Final


@dataclass(frozen=True, slots=True)
class Work:
    """One generation. ``body`` is the validated request as decoded JSON, without ``strata``.

    ``api`` names its shape: ``chat`` has messages, ``completions`` a prompt. ``salt`` separates
    tenants in any shared state of the backend (KV blocks). ``headers`` are the client's, by
    lower-case name, as far as some upstream relays them; ``trace`` goes to every upstream.
    """

    request_id: str
    model: str
    body: dict[str, Any]
    salt: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    api: str = "chat"
    trace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model a backend serves. ``fingerprint`` changes when its answers may change.

    ``relayed`` names the client's headers that go along and may change the answer; ``neutral``
    are values of fields that, to this model, say what leaving the field out says.
    """

    model_id: str
    owned_by: str
    fingerprint: str
    created: int = 0
    prices: Prices | None = None
    relayed: tuple[str, ...] = ()
    neutral: Mapping[str, float] = field(default_factory=dict)

    def said(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return what of a body says something to this model."""
        silent = {
            name
            for name, value in self.neutral.items()
            if body.get(name) == value and isinstance(body[name], bool) == isinstance(value, bool)
        }
        return {name: body[name] for name in body if name not in silent} if silent else body

    def fingerprint_with(self, headers: Mapping[str, str]) -> str:
        """Return the fingerprint of what answers when these headers go along."""
        sent = [(name, headers[name]) for name in self.relayed if name in headers]
        if not sent:
            return self.fingerprint
        digest = blake2b(msgspec.json.encode(sent), digest_size=16).hexdigest()
        return f"{self.fingerprint}+{digest}"


PartState = Literal["ready", "starting", "down", "off"]


@dataclass(frozen=True, slots=True)
class PartHealth:
    """State of one part: ``ok`` says whether it can do its work now; ``each`` are its own parts."""

    ok: bool
    state: PartState
    detail: str = ""
    each: Mapping[str, "PartHealth"] = field(default_factory=dict)


class Backend(Protocol):
    """Something that answers chat requests."""

    name: str

    def models(self) -> list[ModelInfo]:
        """List what can be asked for now."""
        ...

    def stream(self, work: Work) -> AsyncIterator[Event]:
        """Generate; closing the iterator aborts the work within one step.

        Raises:
            BadRequest: the request cannot be served as it is (before the first event).
            BackendError: the backend is down, or broke (also after events were given).
        """
        ...

    async def health(self) -> PartHealth:
        """Say whether requests can be served now."""
        ...

    async def close(self) -> None:
        """Release everything; idempotent."""
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """A backend that knows how many tokens a prompt has before it is asked to answer."""

    async def count_tokens(self, work: Work) -> int:
        """Return the number of tokens of the whole prompt.

        Raises:
            BadRequest: the request cannot be served as it is.
        """
        ...

    async def has_room(self, work: Work) -> bool:
        """Say whether the prompt fits the model's context, and an answer of some length with it.

        Raises:
            BadRequest: the request cannot be served as it is.
            BackendUnavailable: the model is not there to be asked.
        """
        ...


@runtime_checkable
class OpenBackend(Backend, Protocol):
    """A backend that also serves models it does not list."""

    def match(self, model_id: str) -> ModelInfo | None:
        """Return the model of this name, None if it is not served."""
        ...
