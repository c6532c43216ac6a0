"""``/admin/cache``: ask what the caches would do, fill them, browse them, empty them."""

from dataclasses import replace
from typing import Annotated, Any

from litestar import Request, delete, get, post
from msgspec import Meta, Struct

from gateway.access_log import REQUEST_ID
from gateway.admin.query import read_query, take_flag
from gateway.admin.views import candidate_view, entry_view, reason_view, response_of
from gateway.answer import encode
from gateway.api.connection import parts_of, read_body
from gateway.api.text_api import relayed
from gateway.auth import PUBLIC, Tenant
from gateway.call import Call
from gateway.errors import BackendUnavailable, BadRequest
from gateway.laid_out import lay_out
from gateway.parts import Parts
from gateway.wire.cache_admin import EntryRow, ImportResult, LookupBody, RowError, answer_of
from gateway.wire.completions import check_completion, is_completion
from gateway.wire.directives import read_directives
from gateway.wire.openai import check_chat
from gateway.wire.validation import convert, decode_json, decode_object
from semantic_layer import Selector, StoreUnavailable, TextTooLong

ROUTE = "/admin/cache"
HTTP = Request[Any, Any, Any]

FIELDS = {
    "id": "entry_id",
    "tenant": "tenant",
    "namespace": "namespace",
    "model": "model",
    "intent": "intent",
    "tag": "tag",
    "text": "text",
}
_NEAR = frozenset({"near", "radius"})
_NEAR_SHOWN = 20
_DELETE_BY = ("id", "tag", "model", "namespace", "tenant")


class _Radius(Struct, frozen=True):
    radius: Annotated[float, Meta(ge=0, le=1)]


class Paging(Struct, frozen=True):
    """Which page of the entries."""

    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


@post("/cache/lookup", status_code=200)
async def lookup(request: HTTP) -> dict[str, Any]:
    """Tell what the caches would do with a request, without a model call and without counting."""
    parts = parts_of(request.scope)
    body = convert(decode_object(await read_body(request.scope, request.receive)), LookupBody)
    call = _call(request, parts, body.request, body.tenant, body.headers or {})
    found = await parts.cache.inspect(parts.pipeline.query(call), call.control)
    judgement = found.judgement
    view = {
        "outcome": found.outcome,
        "entry": None if found.entry is None else found.entry.entry_id,
        "score": judgement.score,
        "similarity": judgement.similarity,
        "threshold": judgement.threshold,
        "intent": judgement.intent,
        "reasons": [reason_view(reason) for reason in judgement.reasons],
        "candidates": [candidate_view(candidate) for candidate in judgement.candidates],
    }
    return view if found.entry is None else {**view, "response": response_of(found.entry)}


@post("/cache/entries", status_code=200)
async def import_entries(request: HTTP) -> ImportResult:
    """Store answers from elsewhere; bad rows are named, good rows are kept."""
    parts = parts_of(request.scope)
    rows = decode_json(await read_body(request.scope, request.receive))
    if not isinstance(rows, list):
        raise BadRequest("the request body must be a list of entries")
    ids: list[str] = []
    errors: list[RowError] = []
    for at, row in enumerate(rows):
        try:
            ids.append(await _import(request, parts, row))
        except BadRequest as error:
            errors.append(RowError(at, error.message, error.param))
        except StoreUnavailable as error:
            errors.append(RowError(at, str(error), None))
    return ImportResult(len(ids), ids, errors)


@get("/cache/entries")
async def browse_entries(request: HTTP) -> dict[str, Any]:
    """List entries, newest first, by id, tenant, namespace, model, intent, tag or text."""
    query = read_query(request, {*FIELDS, "cursor", "limit"}, may_be_empty={"namespace"})
    return await entries_view(parts_of(request.scope), query)


async def entries_view(parts: Parts, query: dict[str, str]) -> dict[str, Any]:
    """Return what ``GET /admin/cache/entries`` shows.

    Raises:
        BadRequest: the cursor or the limit is none.
        BackendUnavailable: the store does not answer.
    """
    asked = {name: query[name] for name in ("cursor", "limit") if name in query}
    paging = convert(asked, Paging, strict=False)
    selected = {name: value for name, value in query.items() if name in FIELDS}
    selector = replace(_selector(selected), everything=True)
    try:
        page = await parts.cache.browse(selector, paging.cursor, paging.limit)
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    except ValueError:
        raise BadRequest("cursor: not one of ours", param="cursor") from None
    return {"entries": [entry_view(entry) for entry in page.entries], "cursor": page.cursor}


@delete("/cache/entries", status_code=200)
async def invalidate_entries(request: HTTP) -> dict[str, Any]:
    """Remove the selected entries from all stores; ``dry_run=1`` only counts them."""
    query = read_query(request, {*_DELETE_BY, *_NEAR, "all", "dry_run"})
    everything, dry_run = take_flag(query, "all"), take_flag(query, "dry_run")
    if not _NEAR.isdisjoint(query):
        return await _invalidate_near(parts_of(request.scope), query, dry_run=dry_run)
    if not query and not everything:
        names = ", ".join((*_DELETE_BY, "near with radius"))
        raise BadRequest(f"select entries by {names}, or all=1", param="all")
    selector = replace(_selector(query), everything=everything)
    try:
        count = await parts_of(request.scope).cache.invalidate(selector, dry_run=dry_run)
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    return {"deleted": count, "dry_run": dry_run}


async def _invalidate_near(parts: Parts, query: dict[str, str], *, dry_run: bool) -> dict[str, Any]:
    """Remove entries by the likeness of what they answer; the nearest are shown."""
    text, radius = query.pop("near", None), query.pop("radius", None)
    if text is None or radius is None:
        missing = "near" if text is None else "radius"
        raise BadRequest(f"{missing}: near and radius go together", param=missing)
    asked = convert({"radius": radius}, _Radius, strict=False).radius
    if not parts.settings.semantic.enabled:
        raise BadRequest("near: semantic look-up is off", param="near")
    selector = replace(_selector(query), everything=True)
    try:
        found = await parts.cache.near(text, asked, selector, dry_run=dry_run)
    except TextTooLong as error:
        raise BadRequest(f"near: {error}", param="near") from None
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    shown = [
        {"entry": n.entry.entry_id, "similarity": round(n.similarity, 6), "text": n.entry.text}
        for n in found[:_NEAR_SHOWN]
    ]
    return {"deleted": len(found), "dry_run": dry_run, "nearest": shown}


async def _import(request: HTTP, parts: Parts, tree: Any) -> str:
    row = convert(tree, EntryRow)
    if row.tenant is None and parts.settings.api_keys_file is not None:
        raise BadRequest("tenant: say whose entry it is, as this gateway has keys", param="tenant")
    if row.intent not in (None, *parts.cache.thresholds.priors):
        raise BadRequest(f"intent: {row.intent!r} is not known", param="intent")
    call = _call(request, parts, row.request, row.tenant, {})
    answer = answer_of(row, call.body, call.api)
    call = replace(
        call,
        control=row.control(call.control),
        namespace=call.namespace if row.namespace is None else row.namespace,
    )
    entry_id = await parts.cache.insert(
        parts.pipeline.query(call),
        call.control,
        encode(answer),
        answer_text=answer.text,
        exact_only=answer.is_exact_only or row.exact_only,
    )
    if entry_id is None:
        raise BadRequest("request: one that is never cached", param="request")
    return entry_id


def _call(
    request: HTTP, parts: Parts, body: dict[str, Any], tenant: str | None, headers: dict[str, str]
) -> Call:
    of_completions = is_completion(body)
    asked = (check_completion if of_completions else check_chat)(body, "request")
    api = "completions" if of_completions else "chat"
    laid_out, field = lay_out(asked.body, asked.request.strata, parts.settings.layout, api)
    said = {name.lower(): value for name, value in headers.items()}
    directives = read_directives(said, field, parts.cache.thresholds.priors)
    return Call(
        request_id=request.scope["state"][REQUEST_ID],
        tenant=Tenant.named(tenant or PUBLIC),
        model=asked.request.model,
        body=laid_out,
        api=api,
        control=directives.control,
        route=ROUTE,
        namespace=directives.namespace,
        headers=relayed(said, parts),
    )


def _selector(query: dict[str, str]) -> Selector:
    fields: dict[str, Any] = {FIELDS[name]: value for name, value in query.items()}
    return Selector(**fields)
