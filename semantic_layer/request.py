"""What the cache is asked: a request as decoded JSON, who asks, and what the caller allows."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CacheQuery:
    """One request as the cache sees it.

    ``tenant`` comes from the authenticated key only. ``request`` is the decoded JSON body without
    the ``strata`` field; ``api`` names its shape (``chat`` has ``messages``). ``model_fingerprint``
    changes whenever the model behind the name would answer differently. ``num_bytes`` is the size
    of the body, 0 where nobody knows it; it is no part of the request.
    """

    tenant: str
    model: str
    model_fingerprint: str
    request: dict[str, Any]
    api: str = "chat"
    namespace: str = ""
    num_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CacheControl:
    """What the caller allows for one request; the defaults allow everything.

    ``threshold`` (0..1) only ever makes a hit stricter. ``query_text`` replaces the last user
    message as the text that similarity is judged on; ``context`` names the documents an answer
    rests on: a hit, exact or semantic, needs the same set. ``max_ttl_s`` bounds every TTL.
    """

    no_cache: bool = False
    no_store: bool = False
    only_if_cached: bool = False
    max_age_s: float | None = None
    ttl_s: float | None = None
    max_ttl_s: float | None = None
    tags: tuple[str, ...] = ()
    threshold: float | None = None
    intent: str | None = None
    semantic: bool = True
    query_text: str | None = None
    context: tuple[str, ...] | None = None
