"""``/admin/review``: the unlabelled pairs whose verdicts would tell most."""

from typing import Annotated, Any

from litestar import Request, get
from msgspec import Meta, Struct

from gateway.admin.query import read_query
from gateway.api.connection import parts_of
from gateway.errors import BackendUnavailable
from gateway.evidence import ReviewItem
from gateway.parts import Parts
from gateway.wire.validation import convert
from semantic_layer import StoreUnavailable


class ReviewQuery(Struct, frozen=True):
    """Of which intent, and how many."""

    intent: str | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class ReviewQueue(Struct, frozen=True):
    """Pairs to be judged, the most telling first; send verdicts to ``/admin/feedback``."""

    items: list[ReviewItem]


@get("/review")
async def list_review(request: Request[Any, Any, Any]) -> ReviewQueue:
    """List hits and near-misses that nobody has judged, those nearest to a threshold first."""
    query = convert(read_query(request, {"intent", "limit"}), ReviewQuery, strict=False)
    return await review_view(parts_of(request.scope), query)


async def review_view(parts: Parts, query: ReviewQuery) -> ReviewQueue:
    """Return what ``GET /admin/review`` shows."""
    try:
        items = await parts.evidence.review(query.intent, query.limit)
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    return ReviewQueue(items)
