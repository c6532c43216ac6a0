"""``POST /admin/reload``: read the settings again, without losing a request."""

from typing import Any

from litestar import Request, post

from gateway.api.connection import parts_of
from gateway.errors import BadRequest
from gateway.reload import Reloaded


@post("/reload", status_code=200)
async def reload_settings(request: Request[Any, Any, Any]) -> Reloaded:
    """Take over the settings that can be; the answer names what changed and what needs a restart.

    Settings that are wrong change nothing and are 400.
    """
    reloader = parts_of(request.scope).reloader
    if reloader is None:
        raise BadRequest("this gateway has no settings file to read again")
    return await reloader.reload()
