"""``POST /v1/embeddings``: validated request in, vectors out as numbers or base64."""

from base64 import b64encode
from typing import Literal

import msgspec
import numpy as np
from litestar import post
from litestar.params import JSONBody
from litestar.types import Receive, Scope, Send

from gateway.access_log import OUTCOME, REQUEST_ID
from gateway.api.cache_headers import cache_headers
from gateway.api.connection import ClientGone, ClientWatch, parts_of
from gateway.api.shortcut import answered_by
from gateway.api.text_api import read_arrival, relayed, send_json
from gateway.backends.embeddings import Embedding
from gateway.embeddings import EmbedCall
from gateway.errors import StrataError
from gateway.laid_out import lay_out
from gateway.parts import Parts
from gateway.wire.directives import read_directives
from gateway.wire.embeddings import (
    EmbeddingItem,
    EmbeddingList,
    EmbeddingsRequest,
    EmbeddingsUsage,
    decode_embeddings,
)

ROUTE = "/v1/embeddings"

_encode = msgspec.json.Encoder().encode


async def answer_embeddings(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request.

    Raises:
        StrataError: before the first byte.
    """
    parts = parts_of(scope)
    try:
        call, request = await _read_call(scope, receive, parts)
    except (StrataError, ClientGone):
        parts.metrics.reject(ROUTE)
        parts.stats.reject()
        raise
    try:
        with ClientWatch(receive) as watch:
            reply = await parts.embeddings.run(call)
            watch.release()
    except ClientGone:
        scope["state"][OUTCOME] = "aborted"
        return
    scope["state"][OUTCOME] = reply.report.outcome
    how = request.encoding_format or "float"
    body = _encode(
        EmbeddingList(
            data=[
                EmbeddingItem(index=index, embedding=_written(embedding, how))
                for index, embedding in enumerate(reply.embeddings)
            ],
            model=call.model,
            usage=EmbeddingsUsage(reply.num_tokens, reply.num_tokens),
        )
    )
    await send_json(send, body, cache_headers(reply.report))


async def _read_call(
    scope: Scope, receive: Receive, parts: Parts
) -> tuple[EmbedCall, EmbeddingsRequest]:
    arrival = await read_arrival(scope, receive)
    decoded = await arrival.read(decode_embeddings)
    request = decoded.request
    _, field = lay_out({}, request.strata, parts.settings.layout, "embeddings")
    directives = read_directives(arrival.headers, field, parts.cache.thresholds.priors)
    call = EmbedCall(
        request_id=scope["state"][REQUEST_ID],
        tenant=arrival.tenant,
        model=request.model,
        inputs=decoded.inputs,
        names=tuple(decoded.param_of(at) for at in range(len(decoded.inputs))),
        fields=decoded.fields,
        control=directives.control,
        route=ROUTE,
        namespace=directives.namespace,
        headers=relayed(arrival.headers, parts),
    )
    return call, request


def _written(embedding: Embedding, how: Literal["float", "base64"]) -> list[float] | str:
    if how == "base64":
        return b64encode(embedding.vector).decode()
    numbers: list[float] = np.frombuffer(embedding.vector, "<f4").tolist()
    return numbers


@post(ROUTE, status_code=200, middleware=[answered_by(answer_embeddings)], tags=["models"])
async def create_embeddings(
    data: JSONBody[EmbeddingsRequest],  # noqa: ARG001 - documents the body
) -> EmbeddingList:
    """Turn texts into vectors; inputs embedded before come from the cache."""
    raise AssertionError("answered by the middleware")
