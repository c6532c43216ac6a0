"""Structured logs: one line per request, never a prompt, an answer or a key.

JSON for machines, coloured text on a terminal. Standard library loggers of our dependencies go
the same way.
"""

import logging
import re
import secrets
import sys
import time
from typing import Any

import msgspec
import structlog
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.settings import LogSettings

CLIENT_CLOSED = 499  # nginx's number for a client that went away
REQUEST_ID = "request_id"
OUTCOME = "outcome"

_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_QUIET = ("httpx", "httpcore", "filelock", "urllib3", "sentence_transformers", "transformers")

_log = structlog.get_logger("gateway.access")


def configure_logging(settings: LogSettings) -> None:
    """Send all logs to standard output in the format and from the level of the settings."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers = _renderers(settings)
    structlog.configure(
        processors=[*shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(max(level, logging.WARNING) if level != logging.DEBUG else level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def _renderers(settings: LogSettings) -> list[Processor]:
    on_terminal = settings.format == "auto" and sys.stdout.isatty()
    if settings.format == "console" or on_terminal:
        return [structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())]
    return [structlog.processors.format_exc_info, _render_json]


def _render_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()


class AccessLog:
    """Outermost ASGI layer: gives each request its id, and each ended one its log line.

    A client's own ``x-request-id`` is kept when it is short and plain.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add its id to the response."""
        if scope["type"] != "http":
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
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            _write_line(scope, status, started)


def _request_id(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return value
    return b"req-" + secrets.token_hex(12).encode()


def _write_line(scope: Scope, status: int, started: float) -> None:
    fields: dict[str, Any] = {
        "method": scope["method"],  # type: ignore[typeddict-item]
        "route": scope.get("path_template") or "unknown",
        "status": status,
        "ms": round((time.perf_counter() - started) * 1000, 2),
    }
    state = scope["state"]
    if OUTCOME in state:
        fields[OUTCOME] = state[OUTCOME]
    _log.info("request", request_id=state[REQUEST_ID], **fields)
