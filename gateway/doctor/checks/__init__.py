"""The checks, one question a file: each reads a snapshot and says what it found."""

from collections.abc import Callable

from gateway.doctor.checks.conflicts import check_settings
from gateway.doctor.checks.stores import check_stores
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Snapshot

Check = Callable[[Snapshot], list[Finding]]

CHECKS: tuple[Check, ...] = (check_stores, check_settings)

__all__ = ["CHECKS", "Check"]
