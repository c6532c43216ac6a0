"""Every exception as an error envelope of the API asked; nothing internal reaches the client."""

from http import HTTPStatus
from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from litestar.types import ExceptionHandlersMap

from gateway.access_log import ANTHROPIC, CLIENT_CLOSED, REQUEST_ID
from gateway.api.cache_headers import cache_headers
from gateway.api.connection import ClientGone
from gateway.errors import (
    BackendUnavailable,
    BadRequest,
    NotCached,
    NotFound,
    RateLimited,
    Stopping,
    StrataError,
    Unauthorized,
    UpstreamStatus,
)
from gateway.wire.anthropic.errors import anthropic_envelope, status_of

JSON = "application/json"

_log = structlog.get_logger(__name__)


class MethodNotAllowed(BadRequest):
    """The route exists, but not for this method."""

    status = 405
    code = "method_not_allowed"


def log_unexpected(request_id: str, error: BaseException) -> StrataError:
    """Log an error that is our bug, and return what the client may know of it."""
    _log.error("unexpected_error", request_id=request_id, exc_info=error)
    return StrataError(f"internal error; request id {request_id}", code="internal_error")


def _of_ours(request: Request[Any, Any, Any], error: StrataError) -> Response[Any]:
    headers = _headers(error)
    if not is_anthropic(request.scope["path"]):
        return Response(
            error.envelope(), status_code=error.status, headers=headers, media_type=JSON
        )
    body = anthropic_envelope(error, request.scope["state"][REQUEST_ID])
    return Response(body, status_code=status_of(error), headers=headers, media_type=JSON)


def is_anthropic(path: str) -> bool:
    """Say whether a path belongs to Anthropic's API, whose errors have their own envelope."""
    return path == ANTHROPIC or path.startswith(f"{ANTHROPIC}/")


def stopping_answer(path: str) -> tuple[int, dict[str, Any]]:
    """Return the status and body for a request that comes while the gateway stops."""
    error = Stopping()
    if is_anthropic(path):
        return status_of(error), anthropic_envelope(error)
    return error.status, error.envelope()


def _headers(error: StrataError) -> dict[str, str]:
    match error:
        case Unauthorized():
            return {"WWW-Authenticate": 'Bearer realm="strata"'}
        case UpstreamStatus() | RateLimited():
            return error.headers
        case NotCached() if error.report is not None:
            return {name.decode(): value.decode() for name, value in cache_headers(error.report)}
        case BackendUnavailable() | Stopping():
            return {"Retry-After": "1"}
    return {}


def _of_litestar(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    method, path = request.scope["method"], request.scope["path"]
    match error:
        case MethodNotAllowedException():
            known: StrataError = MethodNotAllowed(f"{method} is not allowed on {path}")
        case NotFoundException():
            known = NotFound(f"unknown route {method} {path}", code="unknown_route")
        case _ if error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            known = log_unexpected(request.scope["state"][REQUEST_ID], error)
        case _:
            known = BadRequest(error.detail)
            known.status = error.status_code
    response = _of_ours(request, known)
    response.headers.update(error.headers or {})
    return response


def _unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    return _of_ours(request, log_unexpected(request.scope["state"][REQUEST_ID], error))


def _client_gone(_: Request[Any, Any, Any], _error: ClientGone) -> Response[Any]:
    return Response(b"", status_code=CLIENT_CLOSED)


EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    StrataError: _of_ours,
    HTTPException: _of_litestar,
    ClientGone: _client_gone,
    Exception: _unexpected,
}
