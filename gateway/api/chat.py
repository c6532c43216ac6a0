"""``POST /v1/chat/completions``: validated request in, JSON or server-sent events out."""

import os

from litestar import post
from litestar.params import JSONBody

from gateway.answer import Answer
from gateway.api import sse
from gateway.api.shortcut import answered_by
from gateway.api.text_api import Arrival, Asked, TextApi
from gateway.backends.base import Usage
from gateway.wire.openai import ChatCompletion, ChatRequest, decode_chat

ROUTE = "/v1/chat/completions"


async def decode(arrival: Arrival) -> Asked:
    """Read a chat request.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    chat = await arrival.read(decode_chat)
    request = chat.request
    renderer = ChatRenderer(request.model, include_usage=request.include_usage)
    return Asked(request.model, chat.body, renderer, bool(request.stream), request.strata)


class ChatRenderer:
    """Writes an answer as a chat completion or its chunks."""

    def __init__(self, model: str, *, include_usage: bool) -> None:
        self._id = "chatcmpl-" + os.urandom(12).hex()
        self._model = model
        self._include_usage = include_usage

    async def whole(self, answer: Answer) -> bytes:
        """Return a whole answer as JSON."""
        return sse.chat_completion(self._id, self._model, answer)

    def stream(self, _: Usage | None) -> sse.ChatStream:
        """Begin a stream."""
        return sse.ChatStream(self._id, self._model, include_usage=self._include_usage)


answer_chat = TextApi(ROUTE, decode)


@post(ROUTE, status_code=200, middleware=[answered_by(answer_chat)], tags=["models"])
async def create_chat_completion(
    data: JSONBody[ChatRequest],  # noqa: ARG001 - documents the body
) -> ChatCompletion:
    """Answer a conversation from the caches or a model; streams when ``stream`` is true."""
    raise AssertionError("answered by the middleware")
