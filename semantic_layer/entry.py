"""A stored answer with everything needed to decide whether it may be served again."""

import msgspec


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer as kept in the response store.

    ``entry_id`` is the exact key of its request (hex), so an exact look-up is one read; the stored
    key is compared on every read. ``answer`` is opaque here: the gateway encodes and decodes it.
    Times are Unix seconds; ``expires_at`` is absolute and a hit never moves it. After
    ``fresh_until``, where that is named, the entry is stale: it answers exact repeats only, while
    a new answer is made.
    """

    entry_id: str
    tenant: str
    namespace: str
    model: str
    model_fingerprint: str
    answer: bytes
    created_at: float
    expires_at: float
    intent: str | None = None
    scope: str | None = None
    text: str | None = None  # what similarity was judged on
    answer_text: str = ""  # for browsing and for judges; never replayed
    exact_only: bool = False
    tags: tuple[str, ...] = ()
    context: tuple[str, ...] | None = None  # the documents that are part of the key
    query: str | None = None  # the text that the caller named for similarity
    request: bytes = b""  # canonical JSON of the request, for browsing and re-embedding
    fresh_until: float | None = None
    restated: str = ""  # the last message in a rewriter's words that need no history

    def is_stale(self, now: float) -> bool:
        """Say whether a new answer is due."""
        return self.fresh_until is not None and self.fresh_until <= now
