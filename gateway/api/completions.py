"""``POST /v1/completions``, OpenAI's legacy API: raw text in, its continuation out."""

import os
import time
from typing import Any

import msgspec
from litestar import post
from litestar.params import JSONBody
from msgspec import UNSET

from gateway.answer import Answer, Choice
from gateway.api import sse
from gateway.api.shortcut import answered_by
from gateway.api.text_api import Arrival, Asked, TextApi
from gateway.backends.base import Delta, Event, Final, Finish, Usage
from gateway.errors import StrataError
from gateway.wire.completions import (
    CompletionRequest,
    TextChoice,
    TextCompletion,
    decode_completion,
)
from gateway.wire.openai import UsageBody, with_extra

ROUTE = "/v1/completions"

_encode = msgspec.json.Encoder().encode


async def decode(arrival: Arrival) -> Asked:
    """Read a completions request.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    decoded = await arrival.read(decode_completion)
    request = decoded.request
    return Asked(
        model=request.model,
        body=decoded.body,
        renderer=CompletionRenderer(request.model, include_usage=request.include_usage),
        is_stream=bool(request.stream),
        strata=request.strata,
        api="completions",
    )


class CompletionRenderer:
    """Writes an answer as a text completion, whole or in pieces."""

    def __init__(self, model: str, *, include_usage: bool = False) -> None:
        self._id = "cmpl-" + os.urandom(12).hex()
        self._created = int(time.time())
        self._model = model
        self._include_usage = include_usage
        self._extra: dict[str, Any] = {}

    async def whole(self, answer: Answer) -> bytes:
        """Return a whole answer as JSON."""
        return _encode(self.body(answer))

    def body(self, answer: Answer) -> Any:
        """Return what encodes as a whole answer."""
        self._extra = answer.extra
        choices = [_whole(choice) for choice in answer.choices]
        return self._body(choices, UsageBody.of(answer.usage))

    def stream(self, _: Usage | None) -> "CompletionRenderer":
        """Begin a stream."""
        return self

    def encode(self, event: Event) -> bytes:
        """Return the bytes of one event; may be empty."""
        match event:
            case Delta():
                self._extra |= event.answer_extra
                if not (event.text or event.choice_extra or event.extra):
                    return b""
                piece = TextChoice(event.index, event.text)
                return self._chunk(with_extra(piece, {}) | event.choice_extra | event.extra)
            case Finish():
                return self._chunk(TextChoice(event.index, "", finish_reason=event.reason))
            case Final():
                if not self._include_usage:
                    return b""
                return sse.event(self._body([], UsageBody.of(event.usage)))

    async def end(self) -> bytes:
        """Return what follows the last event of a complete answer."""
        return sse.DONE

    def fail(self, error: StrataError) -> bytes:
        """Return what ends a stream that broke."""
        return sse.event(error.envelope()) + sse.DONE

    def _chunk(self, choice: Any) -> bytes:
        return sse.event(self._body([choice], None if self._include_usage else UNSET))

    def _body(self, choices: list[Any], usage: Any) -> Any:
        body = TextCompletion(
            id=self._id, created=self._created, model=self._model, choices=choices, usage=usage
        )
        return with_extra(body, self._extra) if self._extra else body


def _whole(choice: Choice) -> Any:
    body = TextChoice(choice.index, choice.text or "", finish_reason=choice.finish_reason)
    return with_extra(body, {}) | choice.choice_extra | choice.extra


answer_completions = TextApi(ROUTE, decode)


@post(ROUTE, status_code=200, middleware=[answered_by(answer_completions)], tags=["models"])
async def create_completion(
    data: JSONBody[CompletionRequest],  # noqa: ARG001 - documents the body
) -> TextCompletion:
    """Continue a text, from the caches or a model; streams when ``stream`` is true."""
    raise AssertionError("answered by the middleware")
