"""``/dashboard/cache``: what is stored; browse it, look at one answer, take answers out."""

from typing import Any

import msgspec
from litestar import Request, get
from litestar.params import FromPath
from litestar.response import Template

from gateway.admin.cache import FIELDS, entries_view
from gateway.api.connection import parts_of
from gateway.dashboard.page import page
from gateway.errors import NotFound

HTTP = Request[Any, Any, Any]
FILTERS = ("text", "intent", "model", "tag", "tenant", "namespace")
SELECTED_BY = ("tag", "model", "namespace", "tenant")


@get("/cache")
async def cache_page(request: HTTP) -> Template:
    """List entries by the filters of the page's address, newest first."""
    known = {*FIELDS, "cursor", "limit"}
    query = {k: v for k, v in request.query_params.items() if k in known and v}
    found = await entries_view(parts_of(request.scope), query)
    return page(
        request,
        "cache.html",
        active="cache",
        entries=found["entries"],
        cursor=found["cursor"],
        filters=FILTERS,
        selected_by=SELECTED_BY,
        is_filtered=any(name in query for name in FIELDS),
    )


@get("/cache/{entry_id:str}")
async def entry_page(request: HTTP, entry_id: FromPath[str]) -> Template:
    """Show one entry in full."""
    found = (await entries_view(parts_of(request.scope), {"id": entry_id}))["entries"]
    if not found:
        raise NotFound(f"there is no entry {entry_id!r}; it may have expired", param="id")
    entry = found[0]
    return page(
        request,
        "entry.html",
        active="cache",
        entry=entry,
        asked=_json(entry["request"]),
        answered=_json(entry["response"]),
    )


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
