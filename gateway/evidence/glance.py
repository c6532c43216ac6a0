"""A recorded request at a glance: what figures are made of, without the candidates."""

import msgspec

from gateway.evidence.recorded import ReasonRow


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a `RecordedRequest` that is read by thousands; fields as there."""

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
