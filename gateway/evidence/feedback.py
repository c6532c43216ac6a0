"""What people say of served answers, and what it changes.

A verdict on a hit by likeness is on the pair of the question and the entry: a wrong pair is never
served again, though the entry stays for its own question. A verdict on any other answer is on the
entry itself: a wrong one is removed. A complaint counts as one of all hits since the word before;
what was served in silence before a restart, or by a gateway that hears of no verdict, is not known.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

import msgspec

from gateway.errors import BadRequest, NotFound
from gateway.evidence.labels import LabelDesk
from gateway.evidence.recorded import CandidateRow, RecordedRequest
from gateway.evidence.request_log import RequestLog
from gateway.record import RequestRecord
from semantic_layer import Label, Selector, SemanticCache, StoreUnavailable

Judged = Literal["right", "wrong"]
Person = Literal["feedback", "review"]


class OnVerdict(Protocol):
    """Hears of a verdict on a served answer."""

    def __call__(self, intent: str | None, *, right: bool, source: str) -> None:
        """Take note of it."""
        ...


class FeedbackResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict did.

    ``labelled`` says that thresholds learn of it. ``dropped`` is what is not served again: the
    ``pair`` of this question and the entry, or the ``entry``.
    """

    verdict: Judged
    request_id: str | None
    entry: str | None
    intent: str | None
    labelled: bool
    dropped: Literal["pair", "entry"] | None


class Feedback:
    """Takes verdicts.

    ``find`` finds a recorded request by its id; ``on_verdict`` is told each verdict on an exact
    hit, which no threshold learns from.

    Raises:
        StoreUnavailable: from any method, when a store is slow or down.
    """

    def __init__(
        self,
        cache: SemanticCache,
        log: RequestLog,
        labels: LabelDesk,
        find: Callable[[str], Awaitable[RecordedRequest | None]],
        on_verdict: OnVerdict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cache = cache
        self._log = log
        self._labels = labels
        self._find = find
        self._on_verdict = on_verdict
        self._clock = clock
        self._silent: Counter[str] = Counter()

    def record(self, record: RequestRecord) -> None:
        """Count a hit that nobody has said a word of yet."""
        if record.outcome == "semantic":
            self._silent[record.intent or ""] += 1

    async def on_request(
        self,
        request_id: str,
        verdict: Judged,
        source: Person,
        about: str | None = None,
        note: str | None = None,
    ) -> FeedbackResult:
        """Take a verdict on what a request was served, or on its candidate ``about``.

        Raises:
            NotFound: no such request is recorded, or it had no such candidate.
            BadRequest: nothing of the request could be right or wrong.
        """
        request = await self._find(request_id)
        if request is None:
            raise NotFound(f"no request {request_id!r} is recorded", param="request_id")
        if about is not None and about != request.entry:
            return await self._on_pair(request, about, verdict, source, note)
        if request.outcome == "semantic" and request.entry is not None:
            return await self._on_pair(request, request.entry, verdict, source, note)
        if request.entry is None:
            raise BadRequest(
                f"request_id: nothing was stored or served for {request_id!r}", param="request_id"
            )
        dropped = await self._drop(request.entry, request.tenant) if verdict == "wrong" else 0
        if request.outcome == "exact":
            self._on_verdict(request.intent, right=verdict == "right", source=source)
        return _result(verdict, request, request.entry, dropped="entry" if dropped else None)

    async def on_entry(
        self, entry_id: str, verdict: Judged, source: Person, note: str | None = None
    ) -> FeedbackResult:
        """Take a verdict on an entry: it holds for its latest hit too, if that is recorded.

        Raises:
            NotFound: there is no such entry, and no hit on it is recorded.
        """
        found, _ = await self._log.select(
            lambda request: request.outcome == "semantic" and request.entry == entry_id, limit=1
        )
        dropped = 0
        if verdict == "wrong":
            dropped = await self._drop(entry_id, None)
        elif not found:
            dropped = await self._cache.invalidate(Selector(entry_id=entry_id), dry_run=True)
        if not found and not dropped:
            raise NotFound(f"there is no entry {entry_id!r}", param="entry")
        how: Literal["entry"] | None = "entry" if verdict == "wrong" else None
        if not found:
            return _result(verdict, None, entry_id, dropped=how)
        labelled = await self._on_pair(found[0], entry_id, verdict, source, note)
        return msgspec.structs.replace(labelled, dropped=how)

    async def _on_pair(
        self,
        request: RecordedRequest,
        entry_id: str,
        verdict: Judged,
        source: Person,
        note: str | None,
    ) -> FeedbackResult:
        candidate = next((c for c in request.candidates if c.entry == entry_id), None)
        if candidate is None:
            raise NotFound(
                f"{request.id!r} had no candidate {entry_id!r} that is recorded", param="entry"
            )
        if verdict == "wrong":
            await self._labels.reject(candidate.pair)
        else:
            await self._labels.take_back(candidate.pair)
        label = label_of(
            request,
            candidate,
            right=verdict == "right",
            source=source,
            at=self._clock(),
            note=note or "",
        )
        await self._add(label)
        dropped: Literal["pair"] | None = "pair" if verdict == "wrong" else None
        return _result(verdict, request, entry_id, labelled=True, dropped=dropped)

    async def _add(self, label: Label) -> None:
        """Add a label with the hits that passed in silence since the one before."""
        if label.source == "feedback" and label.served:
            passed = self._silent.pop(label.intent, 0)
            before = self._labels.book.of_request(label.request_id)
            known = before.silent + 1 if before and before.label_id == label.label_id else 0
            label = msgspec.structs.replace(label, silent=max(0, known + passed - 1))
            try:
                await self._labels.add(label)
            except StoreUnavailable:
                self._silent[label.intent] += passed
                raise
        else:
            await self._labels.add(label)

    async def _drop(self, entry_id: str, tenant: str | None) -> int:
        return await self._cache.invalidate(Selector(entry_id=entry_id, tenant=tenant))


def label_of(
    request: RecordedRequest,
    candidate: CandidateRow,
    *,
    right: bool,
    source: Person,
    at: float,
    note: str,
) -> Label:
    """Return a person's label; a later one on the same pair takes its place."""
    return Label(
        label_id=f"person:{request.key}:{candidate.entry}",
        intent=request.intent or "",
        score=candidate.score,
        right=right,
        source=source,
        served=request.outcome == "semantic" and candidate.entry == request.entry,
        at=at,
        tenant=request.tenant,
        entry_id=candidate.entry,
        request_id=request.key,
        scorer=request.scorer,
        text=request.question,
        stored_text=candidate.text,
        method="person",
        note=note,
    )


def _result(
    verdict: Judged,
    request: RecordedRequest | None,
    entry_id: str,
    *,
    labelled: bool = False,
    dropped: Literal["pair", "entry"] | None = None,
) -> FeedbackResult:
    return FeedbackResult(
        verdict=verdict,
        request_id=request.id if request else None,
        entry=entry_id,
        intent=request.intent if request else None,
        labelled=labelled,
        dropped=dropped,
    )
