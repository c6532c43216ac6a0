"""What another threshold would have changed on recorded traffic."""

from collections.abc import Callable, Iterable

import msgspec

from gateway.evidence.recorded import CandidateRow, RecordedRequest
from gateway.evidence.request_log import RequestLog
from semantic_layer import Label, Recorded, replay

MOST_REPLAYED = 5000
MOST_SHOWN = 20
_NEVER = -1.0  # vetoed whatever the threshold is


class ChangedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that another threshold would have decided otherwise.

    ``count`` requests, of which this is the latest, have its texts and verdict.
    """

    request_id: str
    score: float
    question: str
    stored_question: str
    verdict: str | None
    count: int = 1


class Playback(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded decisions replayed; ``known`` counts those of the changed ones that are labelled.

    ``new_hits`` and ``lost_hits`` show the most frequent of each.
    """

    intent: str
    threshold: float
    num_decisions: int
    hits_before: int
    hits_after: int
    num_new: int
    num_lost: int
    known: dict[str, int]
    new_hits: list[ChangedRequest]
    lost_hits: list[ChangedRequest]


async def play_back(
    log: RequestLog, label_of: Callable[[str], Label | None], intent: str, threshold: float
) -> Playback:
    """Replay the latest decisions of an intent.

    Raises:
        StoreUnavailable: the store is slow or down.
    """
    requests, _ = await log.select(
        lambda request: request.intent == intent and request.outcome in ("semantic", "miss"),
        limit=MOST_REPLAYED,
    )
    by_id = {request.key: request for request in requests}
    result = replay([_past(request, label_of(request.key)) for request in requests], threshold)

    def shown(keys: tuple[str, ...]) -> list[ChangedRequest]:
        return _most_frequent(_changed(by_id[key], label_of(key)) for key in keys)

    return Playback(
        intent=intent,
        threshold=threshold,
        num_decisions=result.num_decisions,
        hits_before=result.hits_before,
        hits_after=result.hits_after,
        num_new=len(result.new_hits),
        num_lost=len(result.lost_hits),
        known={
            "right_new": result.known_right_new,
            "wrong_new": result.known_wrong_new,
            "right_lost": result.known_right_lost,
            "wrong_lost": result.known_wrong_lost,
        },
        new_hits=shown(result.new_hits),
        lost_hits=shown(result.lost_hits),
    )


def best_open(request: RecordedRequest) -> CandidateRow | None:
    """Return the best candidate that only the threshold judged."""
    judged = [c for c in request.candidates if c.reasons and c.reasons[-1].check == "threshold"]
    return max(judged, key=lambda candidate: candidate.score, default=None)


def _most_frequent(changed: Iterable[ChangedRequest]) -> list[ChangedRequest]:
    """Show repeats as one; requests without texts are each their own."""
    groups: dict[tuple[str, ...], ChangedRequest] = {}
    for one in changed:
        texts = (one.question, one.stored_question)
        key = (*(texts if any(texts) else (one.request_id,)), one.verdict or "")
        latest = groups.setdefault(key, one)
        groups[key] = msgspec.structs.replace(latest, count=latest.count + (latest is not one))
    return sorted(groups.values(), key=lambda one: -one.count)[:MOST_SHOWN]


def _past(request: RecordedRequest, label: Label | None) -> Recorded:
    best = best_open(request)
    return Recorded(
        request.key,
        _NEVER if best is None else best.score,
        request.outcome == "semantic",
        None if label is None or best is None or label.entry_id != best.entry else label.right,
    )


def _changed(request: RecordedRequest, label: Label | None) -> ChangedRequest:
    best = best_open(request)
    return ChangedRequest(
        request_id=request.key,
        score=0.0 if best is None else best.score,
        question=request.question,
        stored_question=request.stored_question or ("" if best is None else best.text),
        verdict=None if label is None else "right" if label.right else "wrong",
    )
