"""Which unlabelled hits and near-misses tell most once a person has judged them."""

import asyncio
import math
from collections.abc import Callable

import msgspec

from gateway.evidence.glance import ReasonRow
from gateway.evidence.playback import best_open
from gateway.evidence.recorded import CandidateRow, RecordedRequest
from gateway.evidence.request_log import RequestLog
from semantic_layer import Label, SemanticCache

MOST_CONSIDERED = 2000
MOST_FETCHED = 200
_ODDS_OFF = 1e-4


class ReviewItem(msgspec.Struct, frozen=True, kw_only=True):
    """A pair to be judged: is the stored answer right for the question?

    ``request_id`` and ``entry`` go into the feedback. ``generated_answer`` is what a model said to
    the question, where one did. ``distance`` is how far the score is from the threshold, in log
    odds: the least tell most. ``reasons`` are the checks that the pair passed.
    """

    request_id: str
    entry: str
    at: float
    tenant: str
    intent: str | None
    served: bool
    question: str
    stored_question: str
    stored_answer: str
    generated_answer: str
    score: float
    similarity: float
    threshold: float
    distance: float
    reasons: list[ReasonRow]


async def review_queue(
    log: RequestLog,
    cache: SemanticCache,
    label_of: Callable[[str], Label | None],
    *,
    intent: str | None,
    limit: int,
) -> list[ReviewItem]:
    """Return the pairs nearest to their thresholds, each once.

    Raises:
        StoreUnavailable: a store is slow or down.
    """
    requests, _ = await log.select(
        lambda r: r.outcome in ("semantic", "miss") and intent in (None, r.intent),
        limit=MOST_CONSIDERED,
    )
    pairs: dict[str, tuple[float, RecordedRequest, CandidateRow]] = {}
    for request in requests:
        candidate = best_open(request)
        if (
            candidate is None
            or not candidate.score
            or request.threshold is None
            or label_of(request.key) is not None
        ):
            continue
        distance = abs(_log_odds(candidate.score) - _log_odds(request.threshold))
        pairs.setdefault(candidate.pair, (distance, request, candidate))
    nearest = sorted(pairs.values(), key=lambda pair: pair[0])
    items: list[ReviewItem] = []
    for start in range(0, min(len(nearest), MOST_FETCHED), limit):
        batch = nearest[start : start + limit]
        entries = await asyncio.gather(
            *(cache.entry(request.tenant, candidate.entry) for _, request, candidate in batch)
        )
        items += [
            _item(*pair, entry.answer_text)
            for pair, entry in zip(batch, entries, strict=True)
            if entry is not None
        ]
        if len(items) >= limit:
            break
    return items[:limit]


def _item(
    distance: float, request: RecordedRequest, candidate: CandidateRow, stored_answer: str
) -> ReviewItem:
    served = request.outcome == "semantic"
    assert request.threshold is not None, "a judged candidate without a threshold"
    return ReviewItem(
        request_id=request.key,
        entry=candidate.entry,
        at=request.at,
        tenant=request.tenant,
        intent=request.intent,
        served=served,
        question=request.question,
        stored_question=candidate.text,
        stored_answer=stored_answer,
        generated_answer="" if served else request.answer,
        score=candidate.score,
        similarity=candidate.similarity,
        threshold=request.threshold,
        distance=distance,
        reasons=candidate.reasons,
    )


def _log_odds(share: float) -> float:
    share = min(max(share, _ODDS_OFF), 1 - _ODDS_OFF)
    return math.log(share / (1 - share))
