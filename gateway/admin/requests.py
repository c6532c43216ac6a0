"""``/admin/requests``: recent requests with the reasons of their decisions."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.params import FromPath
from msgspec import Meta, Struct

from gateway.admin.query import read_query
from gateway.api.connection import parts_of
from gateway.errors import BackendUnavailable, BadRequest, NotFound
from gateway.evidence import Glance, RecordedRequest
from gateway.parts import Parts
from gateway.wire.validation import convert
from semantic_layer import Label, StoreUnavailable

HTTP = Request[Any, Any, Any]
OUTCOMES = ("exact", "semantic", "miss", "bypass", "error", "aborted", "rejected")
SCANNED = 10_000
_EQUAL = ("outcome", "intent", "model", "tenant", "namespace", "entry", "route")


class Paging(Struct, frozen=True):
    """Which requests: made after ``since`` (Unix seconds), and which page of them."""

    since: Annotated[float, Meta(ge=0)] = 0.0
    cursor: Annotated[int, Meta(ge=1)] | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


@get("/requests")
async def list_requests(request: HTTP) -> dict[str, Any]:
    """List requests, newest first, by outcome, intent, model, tenant, entry, time or text.

    10,000 are looked at in one call: with few or none found, ``cursor`` goes on to older ones.
    """
    query = read_query(
        request, {*_EQUAL, "text", "since", "cursor", "limit"}, may_be_empty={"namespace"}
    )
    return await requests_view(parts_of(request.scope), query)


@get("/requests/{request_id:str}")
async def get_request(request: HTTP, request_id: FromPath[str]) -> dict[str, Any]:
    """Show one request with every candidate that was considered."""
    return await request_view(parts_of(request.scope), request_id)


async def requests_view(parts: Parts, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return what ``GET /admin/requests`` shows for a query.

    Raises:
        BadRequest: a value of the query is none.
        BackendUnavailable: the store does not answer.
    """
    query = dict(asked)
    paged = {name: query.pop(name) for name in ("since", "cursor", "limit") if name in query}
    paging = convert(paged, Paging, strict=False)
    if query.get("outcome", "miss") not in OUTCOMES:
        raise BadRequest(f"outcome: expected one of {', '.join(OUTCOMES)}", param="outcome")
    try:
        found, cursor = await parts.evidence.requests.select(
            _fits(query),
            before=paging.cursor,
            limit=paging.limit,
            since=paging.since,
            scanned=SCANNED,
        )
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    return {
        "requests": [_view(parts, each, whole=False) for each in found],
        "cursor": None if cursor is None else str(cursor),
        "unrecorded": parts.evidence.requests.num_dropped,
    }


async def request_view(parts: Parts, request_id: str) -> dict[str, Any]:
    """Return what ``GET /admin/requests/{id}`` shows.

    Raises:
        NotFound: no such request is recorded.
        BackendUnavailable: the store does not answer.
    """
    try:
        found = await parts.evidence.find_request(request_id)
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    if found is None:
        raise NotFound(f"no request {request_id!r} is recorded", param="request_id")
    return _view(parts, found, whole=True)


def _fits(query: dict[str, str]) -> Callable[[Glance], bool]:
    wanted = {name: query[name] for name in _EQUAL if name in query}
    text = query.get("text", "").casefold()

    def fits(request: Glance) -> bool:
        return all(getattr(request, name) == value for name, value in wanted.items()) and (
            text in request.question.casefold() or text in request.answer.casefold()
        )

    return fits


def _view(parts: Parts, request: RecordedRequest, *, whole: bool) -> dict[str, Any]:
    view = dict.fromkeys(RecordedRequest.__struct_fields__)
    view |= msgspec.to_builtins(request)
    if not whole:
        del view["candidates"]
    return {**view, "label": _label_view(parts.evidence.labels.book.of_request(request.key))}


def _label_view(label: Label | None) -> dict[str, Any] | None:
    if label is None:
        return None
    return {
        "verdict": "right" if label.right else "wrong",
        "source": label.source,
        "method": label.method,
        "entry": label.entry_id,
        "at": label.at,
    }
