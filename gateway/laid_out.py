"""Lays a request out by the settings, and tells the caches what it rests on."""

from typing import Any

from msgspec.structs import replace

from gateway.errors import BadRequest
from gateway.layout.chunks import Chunk
from gateway.layout.request import order_tools, with_documents
from gateway.setting_sections import LayoutSettings
from gateway.wire.directives import StrataField


def lay_out(
    body: dict[str, Any], field: StrataField | None, settings: LayoutSettings, api: str = "chat"
) -> tuple[dict[str, Any], StrataField | None]:
    """Return the body that the model gets, and the ``strata`` field for the caches.

    Documents are the context of an answer, and the user's own text is its query, where the request
    names no others.

    Raises:
        BadRequest: the documents cannot be written into this request; names the field.
    """
    if api == "chat":
        body = order_tools(body, settings.tools)
    if field is None or not field.documents:
        return body, field
    if api != "chat":
        text = "strata.documents: only chats carry documents"
        raise BadRequest(text, param="strata.documents")
    chunks = [Chunk(document.id, document.text) for document in field.documents]
    told = with_documents(body, chunks, settings.documents)
    query = field.query or (told.question if told.question.strip() else None)
    context = list(told.context) if field.context is None else field.context
    return told.body, replace(field, query=query, context=context, documents=None)
