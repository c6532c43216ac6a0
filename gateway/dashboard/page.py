"""One answer in HTML: what every page has, and the headers that keep it safe."""

from typing import Any
from urllib.parse import urlencode

from litestar import Request
from litestar.datastructures import Cookie
from litestar.response import Redirect, Template

from gateway.admin.entrance import cookie_of
from gateway.admin.session import SESSION, Session
from gateway.api.connection import headers_of, parts_of
from gateway.dashboard.language import LANGUAGES, Messages, language_of

HTTP = Request[Any, Any, Any]
HOME = "/dashboard"
LOGIN = f"{HOME}/login"
PAGES = {
    "overview": HOME,
    "thresholds": f"{HOME}/thresholds",
    "review": f"{HOME}/review",
    "requests": f"{HOME}/requests",
    "cache": f"{HOME}/cache",
    "prefixes": f"{HOME}/prefixes",
    "experiments": f"{HOME}/experiments",
    "doctor": f"{HOME}/doctor",
}
LANGUAGE, THEME = "strata_lang", "strata_theme"
THEMES = ("light", "dark")
YEAR_S = 365 * 86400

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def page(
    request: HTTP, template: str, *, active: str = "", status: int = 200, **context: Any
) -> Template:
    """Render a template with what it is given, and what every page shows.

    ``active`` is the page's name in `PAGES`; ``live`` every how many seconds its parts are renewed.
    """
    language = language_in(request)
    shown = {
        "t": Messages(language),
        "languages": LANGUAGES,
        "language": language,
        "theme": _theme(request),
        "pages": PAGES,
        "active": active,
        "here": request.url.path,
        "query": dict(request.query_params),
        "with_query": lambda **changed: _with_query(request, changed),
        "live": 0,
        "session": session_in(request),
        "masked": parts_of(request.scope).settings.dashboard.mask_prompts,
    }
    cookies = []
    if request.query_params.get("lang") in LANGUAGES:
        cookies.append(
            Cookie(key=LANGUAGE, value=language, path="/", max_age=YEAR_S, samesite="lax")
        )
    return Template(
        template, context={**shown, **context}, status_code=status, headers=HEADERS, cookies=cookies
    )


def to(url: str) -> Redirect:
    """Send the browser to another page."""
    return Redirect(url, status_code=303, headers=HEADERS)


def session_in(request: HTTP) -> Session | None:
    """Return the session that let the request in."""
    session: Session | None = request.scope["state"].get(SESSION)
    return session


def language_in(request: HTTP) -> str:
    """Return the language the reader chose, else the best the browser accepts."""
    return language_of(
        request.query_params.get("lang"),
        cookie_of(request.scope, LANGUAGE),
        headers_of(request.scope).get("accept-language", ""),
    )


def _theme(request: HTTP) -> str:
    theme = cookie_of(request.scope, THEME)
    return theme if theme in THEMES else "auto"


def _with_query(request: HTTP, changed: dict[str, Any]) -> str:
    """Return this page's address with parts of its query changed; None takes one away."""
    query: dict[str, Any] = {**dict(request.query_params), **changed}
    query = {name: value for name, value in query.items() if value is not None}
    return f"{request.url.path}?{urlencode(query)}" if query else request.url.path
