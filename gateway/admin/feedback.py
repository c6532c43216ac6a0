"""``/admin/feedback``: whether a served answer was right."""

from typing import Annotated, Any

from litestar import Request, post
from msgspec import Meta, Struct

from gateway.api.connection import parts_of, read_body
from gateway.errors import BackendUnavailable
from gateway.evidence import FeedbackResult, Judged, Person
from gateway.wire.validation import convert, decode_object, wrong
from semantic_layer import StoreUnavailable

Id = Annotated[str, Meta(min_length=1, max_length=400)]


class FeedbackBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict: on what a request was served, on an entry, or on one candidate of a request."""

    verdict: Judged
    request_id: Id | None = None
    entry: Id | None = None
    note: Annotated[str, Meta(max_length=4000)] | None = None
    source: Person = "feedback"


@post("/feedback", status_code=200)
async def give_feedback(request: Request[Any, Any, Any]) -> FeedbackResult:
    """Label an answer; a wrong one is not served again for that question."""
    body = convert(decode_object(await read_body(request.scope, request.receive)), FeedbackBody)
    feedback = parts_of(request.scope).evidence.feedback
    try:
        if body.request_id is not None:
            return await feedback.on_request(
                body.request_id, body.verdict, body.source, body.entry, body.note
            )
        if body.entry is None:
            raise wrong("request_id", "name a request_id or an entry")
        return await feedback.on_entry(body.entry, body.verdict, body.source, body.note)
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
