"""``/dashboard/prefixes``: the local model's prefix cache – what it shares, what splits it."""

from typing import Any

import msgspec
from litestar import Request, get
from litestar.response import Template

from gateway.admin.prefix import tree_view, volatile_view
from gateway.admin.stats import prefix_view
from gateway.api.connection import parts_of
from gateway.dashboard.page import page
from gateway.errors import BackendUnavailable
from gateway.parts import Parts
from gateway.wire.prefix_admin import TreeQuery

HTTP = Request[Any, Any, Any]
SHOWN = TreeQuery(limit=60, depth=6)
CAUSES = (
    "none", "timestamp", "uuid", "identifier", "number", "json_key_order", "json_format",
    "tool_order", "list_order", "line_order", "unicode_form", "whitespace", "letter_case",
    "edited_text", "edited_history", "never_seen", "evicted", "cleared", "other_tenant",
    "template_change", "model_change", "caching_off", "too_long",
)  # fmt: skip


@get("/prefixes")
async def prefixes_page(request: HTTP) -> Template:
    """Show memory, the tree of shared prefixes, and a box that tells why a prompt missed."""
    parts = parts_of(request.scope)
    stats = await prefix_view(parts)
    try:
        tree = await tree_view(parts, SHOWN) if "blocks" in stats else None
    except BackendUnavailable:
        tree = None
    return page(
        request,
        "prefixes.html",
        active="prefixes",
        live=10,
        stats=stats,
        tree=tree,
        causes=CAUSES,
        example=_example(parts),
    )


@get("/prefixes/volatile")
async def volatile_part(request: HTTP) -> Template:
    """Show the spans of recent prompts that split prefixes; reading them takes a while."""
    report = await volatile_view(parts_of(request.scope))
    return page(request, "volatile.html", report=report)


def _example(parts: Parts) -> str:
    """Return a request for the local model, to be changed by the reader."""
    models = [] if parts.local is None else parts.local.models()
    name = models[0].model_id if models else ""
    messages = [{"role": "system", "content": ""}, {"role": "user", "content": ""}]
    body = msgspec.json.encode({"model": name, "messages": messages})
    return msgspec.json.format(body, indent=2).decode()
