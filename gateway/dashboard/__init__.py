"""``/dashboard``: pages for people over what the admin API tells scripts. Stores nothing itself."""

from gateway.dashboard.errors import APP_ERRORS
from gateway.dashboard.router import dashboard_router, static_files
from gateway.dashboard.templates import template_config

__all__ = ["APP_ERRORS", "dashboard_router", "static_files", "template_config"]
