"""Tenants that are at their limits."""

from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Snapshot, TenantUse

CHECK = "tenants"
NEAR_SHARE = 0.9


def check_tenants(seen: Snapshot) -> list[Finding]:
    """Compare what tenants used with what they may."""
    found = [
        _finding(seen, tenant, name, limit, used)
        for tenant in seen.tenants
        for name, (limit, used) in tenant.limits.items()
        if used >= NEAR_SHARE * limit
    ]
    return found or [
        Finding(
            check=CHECK,
            severity="ok",
            title="No tenant is at a limit",
            evidence=f"{counted(len(seen.tenants), 'tenant')} with limits; "
            f"{sum(seen.traffic.refused.values())} refused requests recorded",
        )
    ]


def _finding(seen: Snapshot, tenant: TenantUse, name: str, limit: float, used: float) -> Finding:
    refused = seen.traffic.refused.get(tenant.name, 0)
    is_over = used >= limit
    return Finding(
        check=CHECK,
        severity="warning" if is_over else "notice",
        title=f"Tenant {tenant.name} "
        + (f"has used up {name}" if is_over else f"comes near its {name}"),
        evidence=f"{used:,.0f} of {limit:,.0f} ({percent(used / limit)}); "
        f"{counted(refused, 'refused request')} recorded",
        mend=f"`strata keys limit {tenant.name} --{name.replace('_', '-')} {2 * limit:.0f}` if it "
        "may have more",
    )
