"""``/dashboard``: in one look, what the caches save and how often a hit is wrong."""

from typing import Any

from litestar import Request, get
from litestar.response import Template

from gateway.admin.stats import traffic_view
from gateway.api.connection import parts_of
from gateway.dashboard.page import page

OUTCOMES = ("exact", "semantic", "miss", "bypass", "error", "aborted")


@get("/")
async def overview(request: Request[Any, Any, Any]) -> Template:
    """Show the traffic, the savings, the wrong-hit estimate and the state of the parts."""
    stats = await traffic_view(parts_of(request.scope))
    return page(request, "overview.html", active="overview", live=4, stats=stats, outcomes=OUTCOMES)
