"""``/dashboard/requests``: recent decisions, each with the whole chain of its reasons."""

import time
from typing import Any

from litestar import Request, get
from litestar.params import FromPath
from litestar.response import Template

from gateway.admin.cache import entries_view
from gateway.admin.prefix import explain_view
from gateway.admin.requests import OUTCOMES, request_view, requests_view
from gateway.api.connection import parts_of
from gateway.dashboard.differences import differences
from gateway.dashboard.page import page
from gateway.errors import BackendUnavailable, BadRequest
from gateway.parts import Parts

HTTP = Request[Any, Any, Any]
FILTERS = ("outcome", "intent", "model", "tenant", "text", "entry", "cursor")
PERIODS = {"": 0, "3600": 3600, "86400": 86400, "604800": 604800}


@get("/requests")
async def requests_page(request: HTTP) -> Template:
    """List requests, newest first, by the filters in the address."""
    parts = parts_of(request.scope)
    given = request.query_params
    asked = {name: given[name] for name in FILTERS if given.get(name)}
    within = given.get("within", "")
    if within not in PERIODS:
        raise BadRequest(f"within: expected one of {', '.join(PERIODS)}", param="within")
    if within:
        asked["since"] = str(time.time() - PERIODS[within])
    found = await requests_view(parts, asked)
    return page(
        request,
        "requests.html",
        active="requests",
        found=found,
        asked=asked,
        within=within,
        periods=list(PERIODS),
        outcomes=OUTCOMES,
        intents=list(parts.cache.thresholds.priors),
    )


@get("/requests/{request_id:str}")
async def request_page(request: HTTP, request_id: FromPath[str]) -> Template:
    """Show one request: what was asked, what was decided and why."""
    found = await request_view(parts_of(request.scope), request_id)
    candidates = found["candidates"] or []
    nearest = found["stored_question"] or (candidates[0].get("text", "") if candidates else "")
    return page(
        request,
        "request.html",
        active="requests",
        one=found,
        key=f"{found['id']}@{found['tenant']}",
        nearest=nearest,
        pieces=differences(found["question"], nearest) if nearest else None,
    )


@get("/requests/{request_id:str}/prefix")
async def request_prefix(request: HTTP, request_id: FromPath[str]) -> Template:
    """Tell what the request would find in the prefix cache now, and where it parts from it."""
    parts = parts_of(request.scope)
    found = await request_view(parts, request_id)
    explanation, obstacle = None, ""
    try:
        asked = await _asked(parts, found)
        if asked is not None:
            explanation = await explain_view(parts, asked, found["tenant"])
    except (BackendUnavailable, BadRequest) as error:
        obstacle = error.message
    return page(
        request, "request_prefix.html", one=found, explanation=explanation, obstacle=obstacle
    )


async def _asked(parts: Parts, found: dict[str, Any]) -> dict[str, Any] | None:
    """Return the whole request, as far as its entry still has it."""
    if not found["entry"]:
        return None
    selected = {"id": found["entry"], "tenant": found["tenant"]}
    entries = (await entries_view(parts, selected))["entries"]
    asked: dict[str, Any] | None = entries[0]["request"] if entries else None
    return asked
