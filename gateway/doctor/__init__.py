"""The doctor: what of a running gateway and its traffic costs hits, trust or speed; how to mend it."""

from gateway.doctor.doctor import examine, findings_of
from gateway.doctor.finding import SEVERITIES, Finding, Report, Severity
from gateway.doctor.snapshot import Snapshot

__all__ = ["SEVERITIES", "Finding", "Report", "Severity", "Snapshot", "examine", "findings_of"]
