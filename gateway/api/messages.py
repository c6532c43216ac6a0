"""``POST /v1/messages`` and ``/v1/messages/count_tokens``: Anthropic's API over chat backends."""

import os

import msgspec
from litestar import post
from litestar.params import JSONBody
from litestar.types import Receive, Scope, Send

from gateway.access_log import REQUEST_ID
from gateway.answer import Answer
from gateway.api.shortcut import answered_by
from gateway.api.text_api import (
    Arrival,
    Asked,
    TextApi,
    read_arrival,
    send_json,
)
from gateway.backends.base import CountsTokens, Usage, Work
from gateway.errors import BadRequest, ModelNotFound
from gateway.wire.anthropic.answer import MessageOut, message_of
from gateway.wire.anthropic.chat import decode_messages, decode_prompt
from gateway.wire.anthropic.events import MessageStream
from gateway.wire.anthropic.request import MessagesRequest, PromptIn
from gateway.wire.blame import Blame

ROUTE = "/v1/messages"
COUNT_ROUTE = f"{ROUTE}/count_tokens"

_RENAMED = {
    "stop": "stop_sequences",
    "max_completion_tokens": "max_tokens",
    "response_format.json_schema.schema": "output_config.format.schema",
    "response_format.json_schema": "output_config.format",
    "response_format": "output_config.format",
    "tools[].function.parameters": "tools[].input_schema",
    "tools[].function": "tools[]",
    "reasoning_effort": "output_config.effort",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
}
_encode = msgspec.json.Encoder().encode


class TokenCount(msgspec.Struct, frozen=True):
    """How many tokens a prompt has."""

    input_tokens: int


async def decode(arrival: Arrival) -> Asked:
    """Read a Messages request.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    read = await arrival.read(decode_messages)
    request = read.request
    return Asked(
        request.model,
        read.body,
        MessagesRenderer(request.model),
        bool(request.stream),
        request.strata,
        blame=Blame(_RENAMED, read.origins, "messages"),
    )


class MessagesRenderer:
    """Writes an answer as a Message or its events."""

    def __init__(self, model: str) -> None:
        self._id = "msg_" + os.urandom(12).hex()
        self._model = model

    async def whole(self, answer: Answer) -> bytes:
        """Return a whole answer as JSON."""
        return _encode(message_of(self._id, self._model, answer))

    def stream(self, usage: Usage | None) -> MessageStream:
        """Begin a stream."""
        return MessageStream(self._id, self._model, usage)


async def _answer_count(scope: Scope, receive: Receive, send: Send) -> None:
    arrival = await read_arrival(scope, receive)
    request, body = await arrival.read(decode_prompt)
    arrival.tenant.rules.check_model(request.model)
    found = arrival.parts.backends.find(request.model)
    if found is None:
        raise ModelNotFound(f"the model {request.model!r} does not exist", param="model")
    backend, info = found
    if not isinstance(backend, CountsTokens):
        raise BadRequest(
            f"model: tokens of {request.model!r} are counted by its provider alone",
            param="model",
            code="unsupported",
        )
    work = Work(scope["state"][REQUEST_ID], info.model_id, body, arrival.tenant.salt)
    await send_json(send, _encode(TokenCount(await backend.count_tokens(work))))


answer_messages = TextApi(ROUTE, decode)


@post(ROUTE, status_code=200, middleware=[answered_by(answer_messages)], tags=["models"])
async def create_message(
    data: JSONBody[MessagesRequest],  # noqa: ARG001 - documents the body
) -> MessageOut:
    """Answer a conversation in Anthropic's format; streams when ``stream`` is true."""
    raise AssertionError("answered by the middleware")


@post(COUNT_ROUTE, status_code=200, middleware=[answered_by(_answer_count)], tags=["models"])
async def count_tokens(data: JSONBody[PromptIn]) -> TokenCount:  # noqa: ARG001 - documents the body
    """Count the tokens of a prompt of the local model, tools and system prompt included."""
    raise AssertionError("answered by the middleware")
