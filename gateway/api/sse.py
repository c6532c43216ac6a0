"""Chat answers as bytes: one JSON document, or a stream of server-sent events.

Source: OpenAI API reference, "Streaming"; an error after the first byte is an event of its own,
as vLLM sends it.
"""

import time
from typing import Any

import msgspec
from msgspec import UNSET

from gateway.answer import Answer, Choice
from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob
from gateway.errors import StrataError
from gateway.wire.openai import (
    AssistantMessage,
    ChatChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChunkChoice,
    ChunkDelta,
    Logprobs,
    UsageBody,
    with_extra,
)

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.Encoder().encode
_NO_CHANGE = ChunkDelta()


def event(data: Any) -> bytes:
    """Return one server-sent event."""
    return b"data: " + _encode(data) + b"\n\n"


def chat_completion(completion_id: str, model: str, answer: Answer) -> bytes:
    """Return a whole answer as JSON."""
    body = ChatCompletion(
        id=completion_id,
        created=int(time.time()),
        model=model,
        choices=[_whole(choice) for choice in answer.choices],
        usage=UsageBody.of(answer.usage),
    )
    return _encode(with_extra(body, answer.extra) if answer.extra else body)


def _whole(choice: Choice) -> Any:
    calls = _without_index(choice.tool_calls)
    message = AssistantMessage("assistant", choice.text, choice.refusal, calls or UNSET)
    body = ChatChoice(
        choice.index,
        with_extra(message, choice.extra) if choice.extra else message,
        _logprobs(choice.logprobs or [], choice.refusal_logprobs),
        choice.finish_reason,
    )
    return with_extra(body, choice.choice_extra) if choice.choice_extra else body


def _logprobs(content: list[TokenLogprob], refusal: list[TokenLogprob]) -> Logprobs | None:
    return Logprobs(content or None, refusal or None) if content or refusal else None


def _without_index(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in call.items() if key != "index"} for call in calls]


def _with_index(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [call if "index" in call else {"index": at, **call} for at, call in enumerate(calls)]


class ChatStream:
    """Encodes the events of one answer; id, time and model stay the same throughout."""

    def __init__(self, completion_id: str, model: str, *, include_usage: bool) -> None:
        self._id = completion_id
        self._created = int(time.time())
        self._model = model
        self._include_usage = include_usage
        self._begun: set[int] = set()
        self._extra: dict[str, Any] = {}

    def encode(self, event_: Event) -> bytes:
        """Return the server-sent events of one of ours; may be empty."""
        match event_:
            case Delta():
                self._extra.update(event_.answer_extra)
                return self._begin(event_.index) + self._delta(event_)
            case Finish():
                return self._begin(event_.index) + self._chunk(
                    ChunkChoice(event_.index, ChunkDelta(), finish_reason=event_.reason)
                )
            case Final():
                return self._usage(event_)

    async def end(self) -> bytes:
        """Return what follows the last event of a complete answer."""
        return DONE

    def fail(self, error: StrataError) -> bytes:
        """Return what ends a stream that broke."""
        return event(error.envelope()) + DONE

    def _begin(self, index: int) -> bytes:
        if index in self._begun:
            return b""
        self._begun.add(index)
        return self._chunk(ChunkChoice(index, ChunkDelta("assistant", "", None)))

    def _delta(self, delta: Delta) -> bytes:
        change = ChunkDelta(
            content=delta.text or UNSET,
            refusal=delta.refusal or UNSET,
            tool_calls=_with_index(delta.tool_calls) or UNSET,
        )
        logprobs = _logprobs(delta.logprobs, delta.refusal_logprobs)
        if not (delta.extra or delta.choice_extra or logprobs) and change == _NO_CHANGE:
            return b""
        body = with_extra(change, delta.extra) if delta.extra else change
        choice = ChunkChoice(delta.index, body, logprobs)
        return self._chunk(with_extra(choice, delta.choice_extra) if delta.choice_extra else choice)

    def _usage(self, final: Final) -> bytes:
        if not self._include_usage:
            return b""
        return self._event([], UsageBody.of(final.usage))

    def _chunk(self, choice: Any) -> bytes:
        return self._event([choice], None if self._include_usage else UNSET)

    def _event(self, choices: list[Any], usage: Any) -> bytes:
        chunk = ChatCompletionChunk(
            id=self._id, created=self._created, model=self._model, choices=choices, usage=usage
        )
        return event(with_extra(chunk, self._extra) if self._extra else chunk)
