"""``/admin/doctor``: what is wrong or could be better, with evidence and mend."""

from typing import Any

from litestar import Request, get

from gateway.admin.query import read_query
from gateway.api.connection import parts_of
from gateway.doctor import Report, examine

HTTP = Request[Any, Any, Any]


@get("/doctor")
async def doctor(request: HTTP) -> Report:
    """Examine the gateway and its recorded traffic; the worst findings first."""
    read_query(request, set())
    return await examine(parts_of(request.scope))
