"""Bodies of the prefix cache's admin routes."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.backends.local_prefix import WarmedPrompt
from gateway.wire.cache_admin import RowError
from gateway.wire.directives import Label

MAX_REQUESTS = 1000


class ExplainBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A chat request whose prompt is to be explained, and whose cache it is."""

    request: dict[str, Any]
    tenant: Label | None = None


class WarmBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Chat requests whose prompts are to be computed ahead of use.

    ``pin`` true keeps them until they are unpinned, false unpins them. ``public`` prompts are
    shared by all tenants, so they belong to none.
    """

    requests: Annotated[list[Any], Meta(min_length=1, max_length=MAX_REQUESTS)]
    pin: bool | None = None
    public: bool = False
    tenant: Label | None = None


class WarmRow(Struct, frozen=True):
    """A good row of a warm-up by its place in the list."""

    index: int
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    pinned: bool

    @classmethod
    def of(cls, index: int, warmed: WarmedPrompt) -> "WarmRow":
        """Return a warmed request's numbers at its place."""
        return cls(
            index=index,
            prompt_tokens=warmed.prompt_tokens,
            cached_tokens=warmed.cached_tokens,
            computed_tokens=warmed.computed_tokens,
            pinned=warmed.pinned,
        )


class WarmResult(Struct, frozen=True):
    """What a warm-up did, in tokens; bad rows are named, good rows are kept."""

    warmed: int
    computed_tokens: int
    cached_tokens: int
    results: list[WarmRow]
    errors: list[RowError]


class TreeQuery(Struct, frozen=True):
    """How much of the tree to show."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    depth: Annotated[int, Meta(ge=1, le=1000)] = 16
