"""Who makes a change, as they say themselves: for the history alone."""

from collections.abc import Mapping

from gateway.errors import BadRequest

ACTOR = "x-strata-actor"
MAX_ACTOR = 64


def actor_of(headers: Mapping[str, str]) -> str:
    """Return the name in the header, else ``admin``.

    Raises:
        BadRequest: it is empty, long or not printable.
    """
    actor = headers.get(ACTOR, "admin").strip()
    if not (actor.isprintable() and 0 < len(actor) <= MAX_ACTOR):
        raise BadRequest(f"{ACTOR}: expected 1 to {MAX_ACTOR} characters", param=ACTOR)
    return actor
