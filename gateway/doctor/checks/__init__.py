"""The checks, one question a file: each reads a snapshot and says what it found."""

from collections.abc import Callable

from gateway.doctor.checks.backends import check_backends
from gateway.doctor.checks.conflicts import check_settings
from gateway.doctor.checks.hit_shares import check_hit_shares
from gateway.doctor.checks.lifetimes import check_lifetimes
from gateway.doctor.checks.look_ups import check_look_ups
from gateway.doctor.checks.memory import check_memory
from gateway.doctor.checks.prompts import check_prompts
from gateway.doctor.checks.stores import check_stores
from gateway.doctor.checks.tenants import check_tenants
from gateway.doctor.checks.thresholds import check_thresholds
from gateway.doctor.checks.warm_up import check_warm_up
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Snapshot

Check = Callable[[Snapshot], list[Finding]]

CHECKS: tuple[Check, ...] = (
    check_stores,
    check_backends,
    check_thresholds,
    check_prompts,
    check_hit_shares,
    check_memory,
    check_lifetimes,
    check_look_ups,
    check_warm_up,
    check_tenants,
    check_settings,
)

__all__ = ["CHECKS", "Check"]
