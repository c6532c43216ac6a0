"""``/health/live``, ``/health/ready`` and ``/metrics``: for orchestrators and scrapers, no key."""

from typing import Any

from litestar import HttpMethod, Request, Response, get, route

from gateway.api.connection import parts_of
from gateway.metrics import CONTENT_TYPE
from gateway.readings import health_json, read_health, refresh_metrics

# the HTTP server drops a body that answers HEAD and keeps its length
_READS = [HttpMethod.GET, HttpMethod.HEAD]
READY, DEGRADED, UNAVAILABLE = "ready", "degraded", "unavailable"


@route("/health/live", http_method=_READS, status_code=200, tags=["health"])
async def live() -> dict[str, str]:
    """Say that the process serves."""
    return {"status": "alive"}


@route("/health/ready", http_method=_READS, status_code=200, tags=["health"])
async def ready(request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
    """Tell each part's state; 503 only when no request could be answered."""
    health = await read_health(parts_of(request.scope))
    status = READY if health.is_whole else DEGRADED if health.can_answer else UNAVAILABLE
    return Response(
        {"status": status, **health_json(health)}, status_code=200 if health.can_answer else 503
    )


@get("/metrics", media_type=CONTENT_TYPE, include_in_schema=False)
async def metrics(request: Request[Any, Any, Any]) -> bytes:
    """Expose all series in Prometheus' text format."""
    parts = parts_of(request.scope)
    await refresh_metrics(parts)
    return parts.metrics.render()
