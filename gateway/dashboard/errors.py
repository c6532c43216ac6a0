"""Errors as pages: who has to sign in is sent there, others are told in words."""

from typing import Any
from urllib.parse import urlencode

from litestar import Request, Response
from litestar.exceptions import HTTPException, NotFoundException
from litestar.response import Redirect, Template
from litestar.types import ExceptionHandlersMap

from gateway.access_log import REQUEST_ID
from gateway.admin.entrance import enter_pages, signed_session_of
from gateway.api.connection import ClientGone
from gateway.api.errors import EXCEPTION_HANDLERS, log_unexpected
from gateway.dashboard.page import HOME, LOGIN, page, to
from gateway.errors import NotFound, StrataError, Unauthorized

HTTP = Request[Any, Any, Any]
_GET = "GET"
_CLIENT_CLOSED = 499
_STATIC = f"{HOME}/static/"


def _of_ours(request: HTTP, error: StrataError) -> Template | Redirect:
    if isinstance(error, Unauthorized):
        return to(_login_for(request))
    return page(
        request, "error.html", status=error.status, error_status=error.status, message=error.message
    )


def _of_litestar(request: HTTP, error: HTTPException) -> Template:
    status = error.status_code
    return page(request, "error.html", status=status, error_status=status, message=error.detail)


def _unexpected(request: HTTP, error: Exception) -> Template | Redirect:
    return _of_ours(request, log_unexpected(request.scope["state"][REQUEST_ID], error))


def _client_gone(_: HTTP, _error: ClientGone) -> Response[bytes]:
    return Response(b"", status_code=_CLIENT_CLOSED)


def _login_for(request: HTTP) -> str:
    """Return the way to sign in and come back."""
    if request.scope["method"] != _GET or request.url.path == HOME:
        return LOGIN
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{LOGIN}?{urlencode({'next': request.url.path + query})}"


PAGE_ERRORS: ExceptionHandlersMap = {
    StrataError: _of_ours,
    HTTPException: _of_litestar,
    ClientGone: _client_gone,
    Exception: _unexpected,
}


def _unrouted(request: HTTP, error: HTTPException) -> Any:
    """Answer what no route takes: with a page where a person asked for one."""
    path = request.scope["path"]
    is_page = path.startswith(f"{HOME}/") and not path.startswith(_STATIC)
    if not is_page or request.scope["method"] != _GET:
        return EXCEPTION_HANDLERS[HTTPException](request, error)
    try:
        enter_pages(request, signed_session_of(request.scope))
    except StrataError as refused:
        return _of_ours(request, refused)
    if isinstance(error, NotFoundException):
        return _of_ours(request, NotFound(f"there is no page {path}"))
    return _of_litestar(request, error)


APP_ERRORS: ExceptionHandlersMap = {**EXCEPTION_HANDLERS, HTTPException: _unrouted}
