"""A recorded request at a glance: what figures are made of, without the candidates."""

import msgspec


class ReasonRow(msgspec.Struct, frozen=True):
    """One check of a decision."""

    check: str
    verdict: str
    detail: str = ""


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of thousands of recorded requests. ``at`` is Unix seconds, of its end.

    ``entry`` is what answered it, or what its answer was stored as.
    """

    id: str
    at: float
    tenant: str
    route: str
    model: str
    outcome: str
    seconds: float
    namespace: str = ""
    intent: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    coalesced: bool = False
    entry: str | None = None
    threshold: float | None = None
    score: float | None = None
    reasons: list[ReasonRow] = []
    question: str = ""
    answer: str = ""
