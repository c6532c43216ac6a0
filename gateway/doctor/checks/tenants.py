"""Tenants that are at their limits."""

from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding, finding
from gateway.doctor.snapshot import Snapshot, TenantUse
from gateway.said import Joined, say

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
    refused = sum(seen.traffic.refused.values())
    return found or [
        finding(
            CHECK,
            "ok",
            say("No tenant is at a limit"),
            say(
                "{tenants} with limits; {refused} recorded",
                tenants=counted(len(seen.tenants), "tenant"),
                refused=counted(refused, "refused request"),
            ),
        )
    ]


def _finding(seen: Snapshot, tenant: TenantUse, name: str, limit: float, used: float) -> Finding:
    refused = counted(seen.traffic.refused.get(tenant.name, 0), "refused request")
    is_over = used >= limit
    return finding(
        CHECK,
        "warning" if is_over else "notice",
        say(
            "Tenant {tenant} has used up {limit}"
            if is_over
            else "Tenant {tenant} comes near its {limit}",
            tenant=tenant.name,
            limit=name,
        ),
        Joined(
            [
                say(
                    "{used} of {limit} ({share})",
                    used=f"{used:,.0f}",
                    limit=f"{limit:,.0f}",
                    share=percent(used / limit),
                ),
                say("{refused} recorded", refused=refused),
            ]
        ),
        say(
            "`{command}` if it may have more",
            command=f"strata keys limit {tenant.name} --{name.replace('_', '-')} {2 * limit:.0f}",
        ),
    )
