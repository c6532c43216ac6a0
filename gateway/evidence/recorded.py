"""One request as operators see it afterwards: what was decided, why, and for which words."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gateway.evidence.glance import Glance, ReasonRow
from gateway.record import RequestRecord
from gateway.stats import counted_as
from semantic_layer import Candidate, Reason, rejection_id

MAX_CHARS = 2000
MAX_CANDIDATES = 5
_ELLIPSIS = "…"


class CandidateRow(msgspec.Struct, frozen=True):
    """One stored entry that was considered; ``pair`` names it together with the question."""

    entry: str
    similarity: float
    score: float
    pair: str
    text: str = ""
    reasons: list[ReasonRow] = []


class RecordedRequest(Glance, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded request, whole. Texts are cut after `MAX_CHARS`."""

    ttft_s: float | None = None
    completion_tokens: int | None = None
    stand_in: str | None = None
    similarity: float | None = None
    scorer: str = ""
    arm: str | None = None
    candidates: list[CandidateRow] = msgspec.field(default_factory=list)
    stored_question: str = ""

    @property
    def key(self) -> str:
        """What tells it from requests of other tenants that sent the same id."""
        return key_of(self.id, self.tenant)


def key_of(request_id: str, tenant: str) -> str:
    """Return the id of a request's row: clients choose request ids, tenants don't share them."""
    return f"{request_id}@{tenant}"


def recorded(record: RequestRecord, at: float, scorer: str, *, texts: bool) -> RecordedRequest:
    """Return what is kept of a request; without ``texts`` none of its words."""
    judgement, usage = record.judgement, record.usage
    spoken = record.spoken if texts else None
    best = sorted(judgement.candidates, key=lambda c: (-c.score, -c.similarity))
    return RecordedRequest(
        id=record.request_id,
        at=at,
        tenant=record.tenant,
        route=record.route,
        model=record.model,
        outcome=counted_as(record),
        seconds=record.seconds,
        namespace="" if record.spoken is None else record.spoken.namespace,
        intent=record.intent,
        ttft_s=record.ttft_s,
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
        cached_tokens=None if usage is None else usage.cached_tokens,
        coalesced=record.coalesced,
        stand_in=record.stand_in,
        entry=record.entry_id,
        threshold=judgement.threshold,
        score=judgement.score,
        similarity=judgement.similarity,
        arm=judgement.arm,
        scorer=scorer if judgement.score is not None else "",
        reasons=_reasons(judgement.reasons, texts=texts),
        candidates=[_candidate(record, c, texts=texts) for c in best[:MAX_CANDIDATES]],
        question=_cut(judgement.text or question_of(spoken.body)) if spoken else "",
        stored_question=_cut(spoken.stored) if spoken else "",
        answer=_cut(spoken.answer) if spoken else "",
    )


def question_of(body: Mapping[str, Any]) -> str:
    """Return what a request asks, in words: its last user message, or its prompt."""
    messages = body.get("messages")
    if isinstance(messages, list):
        users = [m for m in messages if isinstance(m, Mapping) and m.get("role") == "user"]
        return _words(users[-1].get("content")) if users else ""
    return _words(body.get("prompt", body.get("input")))


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "\n".join(part for part in parts if isinstance(part, str))


def _candidate(record: RequestRecord, candidate: Candidate, *, texts: bool) -> CandidateRow:
    return CandidateRow(
        candidate.entry_id,
        candidate.similarity,
        candidate.score,
        rejection_id(record.tenant, candidate.entry_id, record.judgement.text or ""),
        _cut(candidate.text) if texts else "",
        _reasons(candidate.reasons, texts=texts),
    )


def _reasons(reasons: Sequence[Reason], *, texts: bool) -> list[ReasonRow]:
    """Return the reasons; the details of guards quote words."""
    return [ReasonRow(r.check, r.verdict, _cut(r.detail) if texts else "") for r in reasons]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + _ELLIPSIS
