"""``/dashboard/said``: what the admin API said in English, in the language of the page."""

from typing import Annotated, Any

import msgspec
from litestar import Request, post

from gateway.api.connection import read_body
from gateway.dashboard.page import language_in
from gateway.dashboard.sentences import sentences_in
from gateway.wire.validation import convert, decode_object

HTTP = Request[Any, Any, Any]
MAX_CHARS = 4000


class Text(msgspec.Struct, frozen=True):
    """One text, in some language."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_CHARS)]


@post("/said", status_code=200)
async def said(request: HTTP) -> Text:
    """Put a text of the admin API in the reader's language; unknown ones stay as they are."""
    given = convert(decode_object(await read_body(request.scope, request.receive)), Text)
    return Text(sentences_in(language_in(request)).translated(given.text))
