"""``/admin/backup`` and ``/admin/restore``: all that the caches hold and have learnt, in lines."""

import time
from collections.abc import AsyncIterator
from typing import Any

from litestar import Request, get, post
from litestar.response import Stream

from gateway.admin.query import read_query, take_flag
from gateway.api.connection import parts_of, read_body
from gateway.errors import BackendUnavailable, BadRequest
from gateway.evidence import JournalRow
from gateway.parts import Parts
from gateway.wire.backup import (
    FORMAT,
    EntryLine,
    Header,
    RestoreBody,
    RestoreResult,
    Writing,
    problem_of,
)
from gateway.wire.validation import convert, decode_object
from semantic_layer import Selector, StoreUnavailable

HTTP = Request[Any, Any, Any]

_PAGE = 100
_EVERYTHING = Selector(everything=True)


@get("/backup", media_type="application/x-ndjson")
async def back_up(request: HTTP) -> Stream:
    """Stream entries, policies, labels, rejections and experiments; ``requests=1``: requests too.

    The last line has the count and the sha256: without it the backup was cut off.
    """
    query = read_query(request, {"requests"})
    with_requests = take_flag(query, "requests")
    parts = parts_of(request.scope)
    try:
        names = await parts.evidence.copy.names(with_requests=with_requests)
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    return Stream(_lines(parts, names, _version(request)), media_type="application/x-ndjson")


@post("/restore", status_code=200)
async def restore(request: HTTP) -> RestoreResult:
    """Write lines of a backup; what is there already stays, and all are checked before any."""
    parts = parts_of(request.scope)
    body = convert(decode_object(await read_body(request.scope, request.receive)), RestoreBody)
    for at, line in enumerate(body.lines):
        problem = problem_of(line)
        if problem is not None:
            raise BadRequest(f"lines[{at}]: {problem}", param=f"lines[{at}]")
    entries = [line.entry for line in body.lines if isinstance(line, EntryLine)]
    rows = [line for line in body.lines if isinstance(line, JournalRow)]
    try:
        restored = await parts.cache.restoration.put(entries)
        num_rows = await parts.evidence.copy.put(rows)
        await parts.evidence.catch_up()
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    return RestoreResult(
        entries=restored.num_written,
        rows=num_rows,
        kept=restored.num_kept + len(rows) - num_rows,
        expired=restored.num_expired,
    )


async def _lines(parts: Parts, names: list[str], version: str) -> AsyncIterator[bytes]:
    writing = Writing()
    yield writing.line(Header(FORMAT, version, time.time(), parts.cache.restoration.embedder))
    for name in names:
        async for row in parts.evidence.copy.rows(name):
            yield writing.line(row)
    cursor = None
    while True:
        page = await parts.cache.browse(_EVERYTHING, cursor, _PAGE)
        for entry in page.entries:
            yield writing.line(EntryLine(entry))
        cursor = page.cursor
        if cursor is None:
            break
    yield writing.end()


def _version(request: HTTP) -> str:
    config = request.app.openapi_config
    return "0" if config is None else config.version
