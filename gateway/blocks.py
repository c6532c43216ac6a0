"""An answer's one choice as a row of blocks: reasoning, text, refusal, tool calls.

What Anthropic's and the Responses API have in common; knows neither's shapes. A block is begun,
grows and is ended before the next begins.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.answer import Answer
from gateway.backends.base import Delta, Event, Finish, TokenLogprob
from gateway.replay import replay

Kind = Literal["reasoning", "text", "refusal", "tool_call"]

REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class Begin:
    """A block begins; a tool call's id and name are known from here on."""

    kind: Kind
    call_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class More:
    """The block that has begun grows by this text (a tool call: by this JSON)."""

    text: str
    logprobs: Sequence[TokenLogprob] = ()


@dataclass(frozen=True, slots=True)
class End:
    """The block is complete."""


@dataclass(frozen=True, slots=True)
class Note:
    """Sources that the text block cites, in chat's shape."""

    annotations: Sequence[dict[str, Any]]


BlockEvent = Begin | More | Note | End


@dataclass(slots=True)
class Block:
    """One whole block."""

    kind: Kind
    text: str = ""
    call_id: str = ""
    name: str = ""
    logprobs: list[TokenLogprob] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Call:
    """A tool call while it comes in; ``sent`` counts what was passed on of its arguments."""

    call_id: str = ""
    name: str = ""
    arguments: str = ""
    sent: int = 0

    @property
    def is_whole(self) -> bool:
        try:
            json.loads(self.arguments)
        except ValueError:
            return False
        return True


class BlockReader:
    """Turns the deltas of choice 0 into blocks.

    Tool calls of which several grow at once are put in a row: one waits for the JSON before it to
    be complete.
    """

    def __init__(self) -> None:
        self._open: Kind | None = None
        self._calls: dict[int, _Call] = {}
        self._waiting: list[_Call] = []
        self._current: _Call | None = None
        self._notes: list[dict[str, Any]] = []

    def read(self, event: Event) -> Iterator[BlockEvent]:
        """Give what one event adds."""
        match event:
            case Delta(index=0):
                yield from self._delta(event)
            case Finish(index=0):
                yield from self._end_calls()
                yield from self._close()

    def _delta(self, delta: Delta) -> Iterator[BlockEvent]:
        if delta.extra and (thought := reasoning_of(delta.extra)):
            yield from self._grow("reasoning", thought)
        self._notes += delta.extra.get("annotations") or []
        if delta.text or delta.logprobs:
            yield from self._grow("text", delta.text, delta.logprobs)
        if self._open == "text" and self._notes:
            yield Note(self._notes)
            self._notes = []
        if delta.refusal:
            yield from self._grow("refusal", delta.refusal)
        for call in delta.tool_calls:
            yield from self._call(call)

    def _grow(
        self, kind: Kind, text: str, logprobs: Sequence[TokenLogprob] = ()
    ) -> Iterator[BlockEvent]:
        if self._open != kind:
            yield from self._end_calls()
            yield from self._close()
            self._open = kind
            yield Begin(kind)
        yield More(text, logprobs)

    def _call(self, piece: dict[str, Any]) -> Iterator[BlockEvent]:
        place = piece.get("index", len(self._calls))
        if place not in self._calls:
            self._calls[place] = _Call()
            self._waiting.append(self._calls[place])
        call, function = self._calls[place], piece.get("function") or {}
        call.call_id = call.call_id or piece.get("id") or ""
        call.name = call.name or function.get("name") or ""
        call.arguments += function.get("arguments") or ""
        yield from self._advance()

    def _advance(self) -> Iterator[BlockEvent]:
        """Pass on what the current call has gained; go on to the next once it is whole."""
        while True:
            if self._current is not None:
                yield from self._flush(self._current)
            if not self._waiting or not self._waiting[0].name:
                return
            if self._current is not None and not self._current.is_whole:
                return
            yield from self._begin_call()

    def _begin_call(self) -> Iterator[BlockEvent]:
        yield from self._close()
        self._current = self._waiting.pop(0)
        self._open = "tool_call"
        yield Begin("tool_call", self._current.call_id or new_call_id(), self._current.name)

    def _flush(self, call: _Call) -> Iterator[BlockEvent]:
        more = call.arguments[call.sent :]
        if more:
            call.sent = len(call.arguments)
            yield More(more)

    def _end_calls(self) -> Iterator[BlockEvent]:
        while self._waiting:
            yield from self._begin_call()
            assert self._current is not None
            yield from self._flush(self._current)
        self._current = None

    def _close(self) -> Iterator[BlockEvent]:
        if self._open is not None:
            self._open = None
            yield End()


def blocks_of(answer: Answer) -> list[Block]:
    """Return the blocks of a whole answer, as its stream would give them."""
    reader = BlockReader()
    return collect(event for one in replay(answer) for event in reader.read(one))


def collect(events: Iterable[BlockEvent]) -> list[Block]:
    """Put blocks together from their events."""
    blocks: list[Block] = []
    for event in events:
        match event:
            case Begin():
                blocks.append(Block(event.kind, call_id=event.call_id, name=event.name))
            case More():
                blocks[-1].text += event.text
                blocks[-1].logprobs += event.logprobs
            case Note():
                blocks[-1].annotations += event.annotations
    return blocks


def reasoning_of(extra: dict[str, Any]) -> str:
    """Return the reasoning text among fields we relay; servers name it in two ways."""
    for name in REASONING_FIELDS:
        if isinstance(text := extra.get(name), str) and text:
            return text
    return ""


def new_call_id() -> str:
    """Return an id for a tool call that came without one."""
    return "call_" + os.urandom(12).hex()
