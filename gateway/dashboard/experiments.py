"""``/dashboard/experiments``: two thresholds of one intent, tried on halves of its traffic."""

from typing import Any

from litestar import Request, get
from litestar.response import Template

from gateway.admin.experiments import experiments_view
from gateway.api.connection import parts_of
from gateway.dashboard.page import page

HTTP = Request[Any, Any, Any]


@get("/experiments")
async def experiments_page(request: HTTP) -> Template:
    """Show running and ended experiments, and a form that starts one."""
    parts = parts_of(request.scope)
    found = await experiments_view(parts)
    return page(
        request,
        "experiments.html",
        active="experiments",
        live=5,
        experiments=found.experiments,
        intents=sorted(parts.cache.thresholds.priors),
    )
