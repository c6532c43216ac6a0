"""``/dashboard/login`` and ``/dashboard/logout``: the admin key becomes a session's cookie."""

import hmac
from typing import Any
from urllib.parse import parse_qs

from litestar import Request, get, post
from litestar.datastructures import Cookie
from litestar.response import Redirect, Template

from gateway.admin.actor import read_actor
from gateway.admin.entrance import refuse_other_sites, session_of
from gateway.admin.session import LIFETIME_S, Session, cookie_name
from gateway.api.connection import headers_of, parts_of
from gateway.dashboard.page import HOME, LOGIN, page, to
from gateway.errors import BackendUnavailable, BadRequest, Forbidden
from gateway.keys_file import blake2b_digest

HTTP = Request[Any, Any, Any]
MAX_FORM_BYTES = 16_384


@get("/login")
async def show_login(request: HTTP) -> Template | Redirect:
    """Ask for the admin key."""
    parts = parts_of(request.scope)
    if parts.settings.admin_key is None or await session_of(request.scope) is not None:
        return to(_next(request.query_params.get("next")))
    return _asking(request, request.query_params.get("next", ""))


@post("/login", status_code=200)
async def log_in(request: HTTP) -> Template | Redirect:
    """Open a session for who knows the admin key."""
    refuse_other_sites(headers_of(request.scope))
    parts = parts_of(request.scope)
    form = await _form(request)
    key = parts.settings.admin_key
    if key is None:
        return to(HOME)
    if not hmac.compare_digest(blake2b_digest(key), blake2b_digest(form.get("key", ""))):
        return _asking(request, form.get("next", ""), 401, "wrong_key")
    cookie = parts.sessions.open(key, read_actor(form.get("name", "").strip() or "admin"))
    return _with_cookie(request, to(_next(form.get("next"))), cookie, int(LIFETIME_S))


@post("/logout", status_code=200)
async def log_out(request: HTTP) -> Template | Redirect:
    """End the session, at all gateways over one store."""
    refuse_other_sites(headers_of(request.scope))
    session = await session_of(request.scope)
    form = await _form(request)
    shown: Template | Redirect = to(LOGIN)
    if session is not None:
        _check_token(session, form.get("token", ""))
        try:
            await parts_of(request.scope).sessions.end(session)
        except BackendUnavailable as error:
            shown = _asking(request, "", error.status, "signed_out_here")
    return _with_cookie(request, shown, "", 0)


def _asking(request: HTTP, wanted: str, status: int = 200, trouble: str = "") -> Template:
    return page(request, "login.html", status=status, next=wanted, trouble=trouble)


async def _form(request: HTTP) -> dict[str, str]:
    """Return a form's fields, the last of each.

    Raises:
        BadRequest: it is too large, or no form.
    """
    size = 0
    chunks: list[bytes] = []
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_FORM_BYTES:
            raise BadRequest(f"the form is larger than {MAX_FORM_BYTES} bytes")
        chunks.append(chunk)
    try:
        fields = parse_qs(b"".join(chunks).decode(), keep_blank_values=True)
    except ValueError:
        raise BadRequest("the form cannot be read") from None
    return {name: values[-1] for name, values in fields.items()}


def _check_token(session: Session, given: str) -> None:
    if not hmac.compare_digest(session.token.encode(), given.encode()):
        raise Forbidden("the page's token is missing or wrong; load it again")


def _next(wanted: str | None) -> str:
    """Return a page of ours; never an address elsewhere."""
    plain = wanted is not None and wanted.isascii() and wanted.isprintable() and "\\" not in wanted
    ours = plain and (wanted == HOME or str(wanted).startswith((f"{HOME}/", f"{HOME}?")))
    return str(wanted) if ours and not str(wanted).startswith(LOGIN) else HOME


def _with_cookie(
    request: HTTP, response: Template | Redirect, value: str, max_age: int
) -> Template | Redirect:
    scope = request.scope
    proto = headers_of(scope).get("x-forwarded-proto", scope["scheme"])
    response.cookies.append(
        Cookie(
            key=cookie_name(parts_of(scope).settings.port),
            value=value,
            path="/",
            max_age=max_age,
            httponly=True,
            samesite="strict",
            secure=proto == "https",
        )
    )
    return response
