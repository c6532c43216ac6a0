"""A complete answer: put together from events, kept as bytes, and turned back into events.

Knows no API: chat, completions and the rest render the same events in their own shapes.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob, Usage

STORABLE = frozenset({"stop", "tool_calls", "length"})
REPLAY_CHARS = 64


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finished choice; ``text`` is None when the model said nothing but called tools.

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


class Answer(msgspec.Struct, frozen=True):
    """All choices of one request, in order of their index, and what they cost to make."""

    choices: list[Choice]
    usage: Usage
    stand_in: str | None = None

    @property
    def text(self) -> str:
        """The first choice's text, for browsing."""
        return self.choices[0].text or ""

    @property
    def is_storable(self) -> bool:
        """Whether every choice ended by itself or by its limit, with something to show for it.

        What another model answered is not the asked one's answer.
        """
        return (
            self.stand_in is None
            and bool(self.choices)
            and all(
                choice.finish_reason in STORABLE and choice.refusal is None
                for choice in self.choices
            )
        )

    @property
    def is_cut(self) -> bool:
        """Whether a limit ended a choice: such an answer fits exact repeats only."""
        return any(choice.finish_reason == "length" for choice in self.choices)


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


def replay(answer: Answer) -> Iterator[Event]:
    """Give the answer again as a backend would: deltas, one finish per choice, the usage."""
    for choice in answer.choices:
        yield from _deltas(choice)
        yield Finish(choice.index, choice.finish_reason, choice.stop)
    yield Final(answer.usage)


def _deltas(choice: Choice) -> Iterator[Delta]:
    text, logprobs = choice.text or "", choice.logprobs or []
    if choice.extra:
        yield Delta(choice.index, extra=choice.extra)
    if logprobs:
        yield Delta(choice.index, text, logprobs=logprobs)
    else:
        for start in range(0, len(text), REPLAY_CHARS):
            yield Delta(choice.index, text[start : start + REPLAY_CHARS])
    if choice.refusal is not None or choice.tool_calls:
        yield Delta(choice.index, refusal=choice.refusal, tool_calls=choice.tool_calls)


class Assembler:
    """Collects the events of one generation; `answer` is None until it is complete."""

    def __init__(self) -> None:
        self._parts: dict[int, _Parts] = {}
        self._usage: Usage | None = None
        self._stand_in: str | None = None

    def add(self, event: Event) -> None:
        """Take the next event."""
        match event:
            case Delta():
                self._of(event.index).add(event)
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
        whole = len(finished) == len(choices)
        return Answer(finished, self._usage, self._stand_in) if whole else None

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

    def add(self, delta: Delta) -> None:
        self.texts.append(delta.text)
        self.logprobs += delta.logprobs
        if delta.refusal:
            self.refusals.append(delta.refusal)
        for call in delta.tool_calls:
            _grow(self.calls.setdefault(call.get("index", len(self.calls)), {}), call)
        _grow(self.extra, delta.extra)

    def choice(self, index: int) -> Choice | None:
        if self.reason is None:
            return None
        text, calls = "".join(self.texts), [self.calls[at] for at in sorted(self.calls)]
        return Choice(
            index,
            self.reason,
            text=None if calls and not text else text,
            refusal="".join(self.refusals) or None,
            tool_calls=calls,
            logprobs=self.logprobs or None,
            extra=self.extra,
            stop=self.stop,
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
