"""``/admin/tenants``: who has keys, what each may do and has used."""

from typing import Any

import msgspec
from litestar import Request, get

from gateway.api.connection import parts_of
from gateway.auth import Tenant
from gateway.parts import Parts
from gateway.rules import TenantRules


class TenantView(msgspec.Struct, frozen=True):
    """One tenant; ``limits`` holds the limit and the use so far of each limit it has."""

    name: str
    rules: TenantRules
    limits: dict[str, dict[str, float | int | None]]
    traffic: dict[str, Any] | None


@get("/tenants")
async def list_tenants(request: Request[Any, Any, Any]) -> dict[str, list[TenantView]]:
    """List the tenants that have a key, with their rules, limits and traffic since the start."""
    parts = parts_of(request.scope)
    traffic = parts.stats.by_tenant()
    return {"data": [await _view(parts, tenant, traffic) for tenant in parts.key_ring.tenants()]}


async def _view(parts: Parts, tenant: Tenant, traffic: dict[str, Any]) -> TenantView:
    limits = await parts.quotas.usage(tenant)
    return TenantView(tenant.name, tenant.rules, limits, traffic.get(tenant.name))
