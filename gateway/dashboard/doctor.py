"""``/dashboard/doctor``: what is wrong or could be better, with evidence and mend."""

from typing import Any

from litestar import Request, get
from litestar.response import Template

from gateway.api.connection import parts_of
from gateway.dashboard.page import page
from gateway.doctor import examine

HTTP = Request[Any, Any, Any]
KINDS = {"error": "bad", "warning": "warn", "notice": "accent", "ok": "good"}


@get("/doctor")
async def doctor_page(request: HTTP) -> Template:
    """Examine the gateway now; the worst findings first."""
    report = await examine(parts_of(request.scope))
    counts = dict.fromkeys(KINDS, 0)
    for finding in report.findings:
        counts[finding.severity] += 1
    return page(request, "doctor.html", active="doctor", report=report, kinds=KINDS, counts=counts)
