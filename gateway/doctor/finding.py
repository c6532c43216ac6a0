"""What the doctor says: findings, each with its evidence and what mends it."""

from typing import Any, Literal

from msgspec import Struct

from gateway.said import Said, Saying, told

Severity = Literal["ok", "notice", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "notice", "ok")


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    ``error``: something does not work now. ``warning``: trust, speed or money is lost. ``notice``:
    there is more to be had. ``ok``: nothing is wrong; ``mend`` is empty then. ``said`` has title,
    evidence and mend as sentences with their values apart, to be put in other languages.
    """

    check: str
    severity: Severity
    title: str
    evidence: str
    mend: str = ""
    said: dict[str, Any] = {}


def finding(
    check: str, severity: Severity, title: Said, evidence: Saying, mend: Saying = ""
) -> Finding:
    """Return a finding in English that can be put in other languages."""
    return Finding(
        check=check,
        severity=severity,
        title=told(title),
        evidence=told(evidence),
        mend=told(mend),
        said={"title": title, "evidence": evidence, "mend": mend},
    )


class Report(Struct, frozen=True, kw_only=True):
    """All findings, the worst first. ``checked_at`` is Unix seconds, ``took_s`` how long it took.

    ``requests`` are the recorded ones that were read.
    """

    checked_at: float
    took_s: float
    requests: int
    findings: list[Finding]
