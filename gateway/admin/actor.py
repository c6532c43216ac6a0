"""Who makes a change: the signed-in operator, else as they say; for the history alone."""

from litestar.types import Scope

from gateway.admin.session import SESSION
from gateway.api.connection import headers_of
from gateway.errors import BadRequest

ACTOR = "x-strata-actor"
MAX_ACTOR = 64


def actor_of(scope: Scope) -> str:
    """Return the session's name, that in the header, else ``admin``.

    Raises:
        BadRequest: it is empty, long or not printable.
    """
    session = scope["state"].get(SESSION)
    if session is not None:
        return str(session.actor)
    return read_actor(headers_of(scope).get(ACTOR, "admin"))


def read_actor(name: str) -> str:
    """Return a name as the history keeps it.

    Raises:
        BadRequest: it is empty, long or not printable.
    """
    actor = name.strip()
    if not (actor.isprintable() and 0 < len(actor) <= MAX_ACTOR):
        raise BadRequest(f"{ACTOR}: expected 1 to {MAX_ACTOR} characters", param=ACTOR)
    return actor
