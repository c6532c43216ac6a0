"""``/dashboard/review``: hits and near-misses that nobody has judged, to be judged by a key."""

from typing import Any

from litestar import Request, get
from litestar.response import Template

from gateway.admin.review import ReviewQuery, review_view
from gateway.api.connection import parts_of
from gateway.dashboard.differences import differences
from gateway.dashboard.page import page
from gateway.wire.validation import convert


@get("/review")
async def review_page(request: Request[Any, Any, Any]) -> Template:
    """Show the pairs whose verdicts would tell most, one at a time."""
    parts = parts_of(request.scope)
    asked = {"intent": request.query_params.get("intent") or None}
    items = (await review_view(parts, convert(asked, ReviewQuery))).items
    pairs = [(item, *differences(item.question, item.stored_question)) for item in items]
    return page(
        request,
        "review.html",
        active="review",
        pairs=pairs,
        intents=list(parts.cache.thresholds.priors),
        intent=asked["intent"],
        keeps_texts=parts.evidence.requests.keeps_texts,
    )
