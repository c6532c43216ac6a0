"""The doctor: what costs a running gateway hits, trust or speed, and what mends it."""

from gateway.doctor.doctor import examine, findings_of
from gateway.doctor.finding import SEVERITIES, Finding, Report, Severity
from gateway.doctor.snapshot import Snapshot

__all__ = ["SEVERITIES", "Finding", "Report", "Severity", "Snapshot", "examine", "findings_of"]
