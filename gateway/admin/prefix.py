"""``/admin/prefix``: what the KV prefix cache holds, why it misses; warm, pin, reset."""

from collections.abc import Awaitable
from typing import Any

from litestar import Request, delete, get, post

from gateway.admin.query import read_query, take_flag
from gateway.api.connection import parts_of, read_body
from gateway.auth import PUBLIC, Tenant
from gateway.backends.explanation import Explanation
from gateway.backends.local import LocalBackend
from gateway.backends.local_prefix import PrefixTree
from gateway.backends.volatile import VolatileReport
from gateway.errors import BackendUnavailable, BadRequest
from gateway.laid_out import lay_out
from gateway.parts import Parts
from gateway.setting_sections import LayoutSettings
from gateway.wire.cache_admin import RowError
from gateway.wire.openai import check_chat
from gateway.wire.prefix_admin import ExplainBody, TreeQuery, WarmBody, WarmResult, WarmRow
from gateway.wire.validation import convert, decode_object
from prefix_layer import EngineClient, EngineStats, EngineUnavailable

HTTP = Request[Any, Any, Any]


@get("/prefix/tree")
async def tree(request: HTTP) -> PrefixTree:
    """List the most shared prefixes, most hits first; ``limit`` and ``depth`` bound the list."""
    query = convert(read_query(request, {"limit", "depth"}), TreeQuery, strict=False)
    return await tree_view(parts_of(request.scope), query)


async def tree_view(parts: Parts, query: TreeQuery) -> PrefixTree:
    """Return what ``GET /admin/prefix/tree`` shows.

    Raises:
        BackendUnavailable: there is no local model, or its engine is down.
    """
    prefix = _local(parts).prefix
    return await prefix.tree(limit=query.limit, depth=query.depth, names=_names(parts))


@get("/prefix/volatile")
async def volatile(request: HTTP) -> VolatileReport:
    """Show the spans that split the prompts of late, what they cost and where they should stand."""
    query = read_query(request, {"tenant"})
    return await volatile_view(parts_of(request.scope), query.get("tenant"))


async def volatile_view(parts: Parts, tenant: str | None = None) -> VolatileReport:
    """Return what ``GET /admin/prefix/volatile`` shows.

    Raises:
        BadRequest: no key has the tenant.
        BackendUnavailable: there is no local model, or its engine is down.
    """
    salt = None if tenant is None else _salt(parts, tenant)
    return await _local(parts).prefix.volatile(_names(parts), salt)


@post("/prefix/explain", status_code=200)
async def explain(request: HTTP) -> Explanation:
    """Tell what of a request's prompt is cached, where it parts from it, and why."""
    parts = parts_of(request.scope)
    body = convert(decode_object(await read_body(request.scope, request.receive)), ExplainBody)
    return await explain_view(parts, body.request, body.tenant)


async def explain_view(parts: Parts, request: dict[str, Any], tenant: str | None) -> Explanation:
    """Return what ``POST /admin/prefix/explain`` tells of a request.

    Raises:
        BadRequest: it is no chat request for the local model, or no key has the tenant.
        BackendUnavailable: there is no local model, or its engine is down.
    """
    local = _local(parts)
    chat = _chat(local, request, "request", parts.settings.layout)
    return await local.prefix.explain(chat, _salt(parts, tenant))


@post("/prefix/warm", status_code=200)
async def warm(request: HTTP) -> WarmResult:
    """Compute prompts ahead of use, pin or unpin them; only what is not cached is computed."""
    parts = parts_of(request.scope)
    body = convert(decode_object(await read_body(request.scope, request.receive)), WarmBody)
    if body.public and body.tenant is not None:
        raise BadRequest("tenant: a public prompt belongs to no tenant", param="tenant")
    local, salt = _local(parts), _salt(parts, body.tenant)
    if not local.prefix.is_on:
        raise BadRequest("prefix caching is off (local.prefix_caching)", param="requests")
    rows: list[WarmRow] = []
    errors: list[RowError] = []
    for at, row in enumerate(body.requests):
        try:
            rows.append(await _warm(parts, at, row, body, salt))
        except BadRequest as error:
            errors.append(RowError(at, error.message, error.param))
    return WarmResult(
        warmed=len(rows),
        computed_tokens=sum(row.computed_tokens for row in rows),
        cached_tokens=sum(row.cached_tokens for row in rows),
        results=rows,
        errors=errors,
    )


@delete("/prefix", status_code=200)
async def reset(request: HTTP) -> dict[str, Any]:
    """Forget all cached prompts that no running request uses; ``keep_pinned=1`` spares pins."""
    query = read_query(request, {"keep_pinned"})
    keep_pinned = take_flag(query, "keep_pinned")
    stats = await _asked(_engine(parts_of(request.scope)).reset(keep_pinned=keep_pinned))
    return {"blocks": stats.blocks_by_state, "pinned_blocks": stats.num_pinned_blocks}


@delete("/prefix/pins", status_code=200)
async def unpin(request: HTTP) -> dict[str, Any]:
    """Pin nothing any more; what was pinned stays cached until it has to make room."""
    read_query(request, set())
    engine = _engine(parts_of(request.scope))
    before = (await _asked(engine.stats())).num_pinned_blocks
    stats = await _asked(engine.unpin_all())
    return {
        "unpinned_blocks": before,
        "blocks": stats.blocks_by_state,
        "pinned_blocks": stats.num_pinned_blocks,
    }


async def _asked(answer: Awaitable[EngineStats]) -> EngineStats:
    try:
        return await answer
    except EngineUnavailable as error:
        raise BackendUnavailable(f"the local model is not available: {error}") from error


def _engine(parts: Parts) -> EngineClient:
    if parts.engine is None:
        raise BackendUnavailable("no local model is set (local.model)")
    return parts.engine


def _names(parts: Parts) -> dict[bytes, str]:
    return {tenant.salt: tenant.name for tenant in parts.key_ring.tenants()}


async def _warm(parts: Parts, at: int, row: Any, body: WarmBody, salt: bytes) -> WarmRow:
    where = f"requests[{at}]"
    if not isinstance(row, dict):
        raise BadRequest(f"{where}: must be an object", param=where)
    local = _local(parts)
    chat = _chat(local, row, where, parts.settings.layout)
    warmed = await local.prefix.warm(chat, salt, pin=body.pin, public=body.public)
    return WarmRow.of(at, warmed)


def _salt(parts: Parts, tenant: str | None) -> bytes:
    """Return a tenant's salt; with keys, a name that no key has is a mistake."""
    ring = parts.key_ring
    if tenant is not None and not ring.is_open:
        known = [one.name for one in ring.tenants()]
        if tenant not in known:
            raise BadRequest(f"tenant: no key has the tenant {tenant!r}", param="tenant")
    return Tenant.named(tenant or PUBLIC).salt


def _local(parts: Parts) -> LocalBackend:
    if parts.local is None:
        raise BackendUnavailable("no local model is set (local.model)")
    return parts.local


def _chat(
    local: LocalBackend, tree: dict[str, Any], where: str, layout: LayoutSettings
) -> dict[str, Any]:
    """Validate a chat request for the local model; return its body."""
    chat = check_chat(tree, where)
    (model,) = local.models()
    if chat.request.model != model.model_id:
        raise BadRequest(
            f"{where}.model: only prompts of the local model {model.model_id} are cached here",
            param=f"{where}.model",
        )
    body, _ = lay_out(chat.body, chat.request.strata, layout)
    return body
