"""A complete answer: put together from events and kept as bytes.

Knows no API: chat, completions and the rest render the same events in their own shapes.
"""

from typing import Any

import msgspec

from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob, Usage

STORABLE = frozenset({"stop", "tool_calls", "function_call", "length"})


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finished choice; ``text`` is None when the model only called tools or refused.

    ``stop`` is the stop string that ended it, where the backend told.
    """

    index: int
    finish_reason: str
    text: str | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] = []
    logprobs: list[TokenLogprob] | None = None
    extra: dict[str, Any] = {}
    stop: str | None = None
    refusal_logprobs: list[TokenLogprob] = []
    choice_extra: dict[str, Any] = {}


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """All choices of one request, in order of their index, and what they cost to make.

    ``extra`` are fields of the whole answer that an upstream gave and nobody here reads.
    """

    choices: list[Choice]
    usage: Usage
    extra: dict[str, Any] = {}
    stand_in: str | None = None

    @property
    def text(self) -> str:
        """The first choice's text, for browsing."""
        return self.choices[0].text or ""

    @property
    def is_storable(self) -> bool:
        """Whether every choice ended by itself or by its limit.

        What another model answered is not the asked one's answer.
        """
        return (
            self.stand_in is None
            and bool(self.choices)
            and all(choice.finish_reason in STORABLE for choice in self.choices)
        )

    @property
    def is_exact_only(self) -> bool:
        """Whether it fits exact repeats only: a limit cut a choice, or the model refused."""
        return any(
            choice.finish_reason == "length" or choice.refusal is not None
            for choice in self.choices
        )


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Answer)


def encode(answer: Answer) -> bytes:
    """Return the answer as msgpack."""
    return _encoder.encode(answer)


def decode(data: bytes) -> Answer:
    """Return the answer that `encode` wrote.

    Raises:
        msgspec.DecodeError: the bytes are not an answer of this version.
    """
    return _decoder.decode(data)


class Assembler:
    """Collects the events of one generation; `answer` is None until it is complete."""

    def __init__(self) -> None:
        self._parts: dict[int, _Parts] = {}
        self._usage: Usage | None = None
        self._extra: dict[str, Any] = {}
        self._stand_in: str | None = None

    def add(self, event: Event) -> None:
        """Take the next event."""
        match event:
            case Delta():
                self._of(event.index).add(event)
                self._extra.update(event.answer_extra)
            case Finish():
                parts = self._of(event.index)
                parts.reason, parts.stop = event.reason, event.stop
            case Final():
                self._usage, self._stand_in = event.usage, event.stand_in

    @property
    def answer(self) -> Answer | None:
        """The whole answer, once every choice has finished and the end was announced."""
        if self._usage is None or not self._parts:
            return None
        choices = [self._parts[index].choice(index) for index in sorted(self._parts)]
        finished = [choice for choice in choices if choice is not None]
        if len(finished) < len(choices):
            return None
        return Answer(finished, self._usage, self._extra, self._stand_in)

    def _of(self, index: int) -> "_Parts":
        return self._parts.setdefault(index, _Parts())


class _Parts:
    """One choice while it grows."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.stop: str | None = None
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: dict[int, dict[str, Any]] = {}
        self.logprobs: list[TokenLogprob] = []
        self.extra: dict[str, Any] = {}
        self.refusal_logprobs: list[TokenLogprob] = []
        self.choice_extra: dict[str, Any] = {}

    def add(self, delta: Delta) -> None:
        self.texts.append(delta.text)
        self.logprobs += delta.logprobs
        self.refusal_logprobs += delta.refusal_logprobs
        if delta.refusal:
            self.refusals.append(delta.refusal)
        for call in delta.tool_calls:
            _grow(self.calls.setdefault(call.get("index", len(self.calls)), {}), call)
        _grow(self.extra, delta.extra)
        _renew(self.choice_extra, delta.choice_extra)

    @property
    def _is_instead(self) -> bool:
        """Whether something else was said in place of a text."""
        return bool(self.calls or self.refusals or "function_call" in self.extra)

    def choice(self, index: int) -> Choice | None:
        if self.reason is None:
            return None
        text, calls = "".join(self.texts), [self.calls[at] for at in sorted(self.calls)]
        return Choice(
            index,
            self.reason,
            text=None if not text and self._is_instead else text,
            refusal="".join(self.refusals) or None,
            tool_calls=calls,
            logprobs=self.logprobs or None,
            extra=self.extra,
            stop=self.stop,
            refusal_logprobs=self.refusal_logprobs,
            choice_extra=self.choice_extra,
        )


_WHOLE = frozenset({"id", "type", "index", "name", "role"})


def _grow(whole: dict[str, Any], more: dict[str, Any]) -> None:
    """Merge a delta: strings are continued, objects merged, lists joined, the rest replaced."""
    for key, value in more.items():
        match whole.get(key), value:
            case dict() as old, dict():
                _grow(old, value)
            case _, dict():
                whole[key] = {}
                _grow(whole[key], value)
            case (str() as old, str()) if key not in _WHOLE:
                whole[key] = old + value
            case list() as old, list():
                whole[key] = old + value
            case old, _ if value is not None or old is None:
                whole[key] = value


def _renew(whole: dict[str, Any], more: dict[str, Any]) -> None:
    """Merge fields that are states, not pieces: lists are joined, strings replaced."""
    for key, value in more.items():
        match whole.get(key), value:
            case dict() as old, dict():
                _renew(old, value)
            case _, dict():
                whole[key] = {}
                _renew(whole[key], value)
            case list() as old, list():
                whole[key] = old + value
            case _:
                whole[key] = value
