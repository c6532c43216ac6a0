"""Lets callers in to ``/admin`` and ``/dashboard``: by the admin key, or by a session's cookie."""

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Scope

from gateway.admin.guard import AdminGuard
from gateway.admin.session import SESSION, Session, cookie_name
from gateway.api.connection import headers_of, parts_of
from gateway.errors import Forbidden

TOKEN = "x-strata-csrf"  # noqa: S105  a header's name
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


async def admin_only(connection: ASGIConnection, _: BaseRouteHandler) -> None:  # type: ignore[type-arg]
    """Let in who has the key; a session's changes need its token too.

    Raises:
        Unauthorized, Forbidden: the caller may not enter.
    """
    scope = connection.scope
    headers = headers_of(scope)
    session = None if _has_key(headers) else await session_of(scope)
    if session is not None:
        refuse_other_sites(headers)
        given = headers.get(TOKEN, "")
        if _method(scope) not in SAFE and not _same(session.token, given):
            told = f"{TOKEN}: the page's token is missing or wrong; load it again"
            raise Forbidden(told, code="csrf_failed")
        scope["state"][SESSION] = session
        return
    client = connection.client
    guard = AdminGuard(parts_of(scope).settings.admin_key)
    guard.check(headers, client.host if client else None)


async def pages_only(connection: ASGIConnection, _: BaseRouteHandler) -> None:  # type: ignore[type-arg]
    """Let in to a route of the pages; raises as `enter_pages`."""
    enter_pages(connection, await session_of(connection.scope))


def enter_pages(connection: ASGIConnection, session: Session | None) -> None:  # type: ignore[type-arg]
    """Let in who is signed in, or everyone of this machine where no admin key is set.

    A link from another site may lead here: it shows a page, and changes nothing.

    Raises:
        Unauthorized, Forbidden: the caller may not enter.
    """
    scope = connection.scope
    headers = headers_of(scope)
    if session is not None:
        scope["state"][SESSION] = session
        return
    if _method(scope) in SAFE and headers.get("sec-fetch-dest") == "document":
        headers["sec-fetch-site"] = "none"
    client = connection.client
    guard = AdminGuard(parts_of(scope).settings.admin_key)
    guard.check(headers, client.host if client else None)


async def session_of(scope: Scope) -> Session | None:
    """Return the session of a request's cookie; None where it ended, or there is none."""
    session = signed_session_of(scope)
    ended = session is not None and await parts_of(scope).sessions.has_ended(session)
    return None if ended else session


def signed_session_of(scope: Scope) -> Session | None:
    """Return the session that a request's cookie is signed for, though it may have ended."""
    parts = parts_of(scope)
    key = parts.settings.admin_key
    if key is None:
        return None
    return parts.sessions.read(key, cookie_of(scope, cookie_name(parts.settings.port)))


def cookie_of(scope: Scope, name: str) -> str | None:
    """Return a cookie by its name."""
    try:
        found = SimpleCookie(headers_of(scope, {b"cookie"}).get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def refuse_other_sites(headers: dict[str, str]) -> None:
    """Refuse what a browser sends for a page of another origin.

    Raises:
        Forbidden: it is such a request.
    """
    origin = headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != headers.get("host")
    if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Forbidden("no requests are taken from pages of another origin")


def _method(scope: Scope) -> str:
    return str(scope["method"])  # type: ignore[typeddict-item]


def _has_key(headers: dict[str, str]) -> bool:
    return "x-strata-admin-key" in headers or "authorization" in headers


def _same(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode())
