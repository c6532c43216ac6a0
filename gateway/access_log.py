"""Outermost ASGI layer: a request gets its id, and one log line when it has ended."""

import asyncio
import os
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

CLIENT_CLOSED = 499  # nginx's number for a client that went away
FLUSH_AFTER_S = 0.1
REQUEST_ID = "request_id"
OUTCOME = "outcome"
TRACE_ID = "trace_id"
ANTHROPIC = "/v1/messages"
NO_SNIFFING = (b"x-content-type-options", b"nosniff")  # stored prompts are never taken for pages

_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class AccessLine(msgspec.Struct, frozen=True):
    """What is said of one request; never anything of its texts or keys."""

    request_id: str
    method: str
    route: str
    status: int
    outcome: str | None
    ms: float
    timestamp: datetime
    event: str = "request"
    level: str = "info"
    trace_id: str | msgspec.UnsetType = msgspec.UNSET


WriteLine = Callable[[AccessLine], None]


class AccessLog:
    """Passes requests on; adds ``x-request-id`` and ``nosniff``, and writes their line.

    A client's own ``x-request-id`` is kept when it is short and plain. Anthropic's SDKs read theirs
    from ``request-id``.
    """

    def __init__(self, app: ASGIApp, write: WriteLine) -> None:
        self._app = app
        self.write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = _request_id(scope)
        scope["state"][REQUEST_ID] = request_id.decode()
        status = CLIENT_CLOSED

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                named = [(b"x-request-id", request_id), NO_SNIFFING]
                if scope["path"].startswith(ANTHROPIC):
                    named.append((b"request-id", request_id))
                message["headers"] = [*message["headers"], *named]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            self.write(_line(scope, status, started))


class JsonLines:
    """Writes lines as JSON to standard output, flushed together a moment later.

    Source: measured, 3 µs a line against 14 µs through structlog; an exact hit is 100 µs.
    """

    def __init__(self) -> None:
        self._is_flushing = False

    def __call__(self, line: AccessLine) -> None:
        """Write one line."""
        sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
        if not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_later(FLUSH_AFTER_S, self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        sys.stdout.flush()


def write_to_console(line: AccessLine) -> None:
    """Hand a line to structlog, which renders it for people."""
    fields = msgspec.structs.asdict(line)
    for name in ("event", "level", "timestamp"):
        del fields[name]
    if line.trace_id is msgspec.UNSET:
        del fields["trace_id"]
    structlog.get_logger("gateway").info("request", **fields)


def write_nothing(_: AccessLine) -> None:
    """Drop a line: the log level says so."""


def _request_id(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return value
    return b"req-" + os.urandom(12).hex().encode()


def _line(scope: Scope, status: int, started: float) -> AccessLine:
    state = scope["state"]
    return AccessLine(
        state[REQUEST_ID],
        scope["method"],  # type: ignore[typeddict-item]
        scope.get("path_template") or "unknown",
        status,
        state.get(OUTCOME),
        round((time.perf_counter() - started) * 1000, 2),
        datetime.now(UTC),
        trace_id=state.get(TRACE_ID, msgspec.UNSET),
    )
