"""Examines one gateway."""

import asyncio
import time
from collections.abc import Iterable

from gateway.doctor.checks import CHECKS
from gateway.doctor.finding import SEVERITIES, Finding, Report
from gateway.doctor.gather import gather
from gateway.doctor.snapshot import Snapshot
from gateway.parts import Parts


async def examine(parts: Parts) -> Report:
    """Look at everything; nothing is changed, no model is called."""
    started = time.perf_counter()
    seen = await gather(parts)
    findings = await asyncio.to_thread(findings_of, seen)
    return Report(
        checked_at=time.time(),
        took_s=time.perf_counter() - started,
        requests=seen.traffic.requests,
        findings=findings,
    )


def findings_of(seen: Snapshot) -> list[Finding]:
    """Run all checks; the worst findings first."""
    return _ranked(finding for check in CHECKS for finding in check(seen))


def _ranked(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
