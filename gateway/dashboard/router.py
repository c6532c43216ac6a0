"""The dashboard's routes."""

from pathlib import Path

from litestar import Router
from litestar.static_files import create_static_files_router

from gateway.admin.entrance import pages_only
from gateway.dashboard.cache import cache_page, entry_page
from gateway.dashboard.doctor import doctor_page
from gateway.dashboard.errors import PAGE_ERRORS
from gateway.dashboard.experiments import experiments_page
from gateway.dashboard.login import log_in, log_out, show_login
from gateway.dashboard.overview import overview
from gateway.dashboard.page import HOME
from gateway.dashboard.prefixes import prefixes_page, volatile_part
from gateway.dashboard.requests import request_page, request_prefix, requests_page
from gateway.dashboard.review import review_page
from gateway.dashboard.said import said
from gateway.dashboard.thresholds import preview, thresholds_page

STATIC = Path(__file__).with_name("static")


def dashboard_router() -> Router:
    """Return the pages: signing in is open to all, the rest to who is let in."""
    pages = Router(
        path="/",
        guards=[pages_only],
        route_handlers=[
            overview,
            thresholds_page,
            preview,
            review_page,
            requests_page,
            request_page,
            request_prefix,
            cache_page,
            entry_page,
            prefixes_page,
            volatile_part,
            experiments_page,
            doctor_page,
            said,
        ],
    )
    return Router(
        path=HOME,
        include_in_schema=False,
        exception_handlers=PAGE_ERRORS,
        route_handlers=[show_login, log_in, log_out, pages],
    )


def static_files() -> Router:
    """Return the style and the module of the pages, which hold nothing of this gateway."""
    return create_static_files_router(
        path=f"{HOME}/static",
        directories=[STATIC],
        include_in_schema=False,
        cache_control=None,
        name="dashboard-static",
    )
