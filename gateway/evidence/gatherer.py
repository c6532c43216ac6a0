"""Gathers labels from traffic, beside the response path: shadow answers, and near-misses compared.

A share of semantic hits is answered afresh in the background and compared with what was served; a
near-miss's stored answer is compared with the one that was generated anyway. Neither is a request
of the client's: no limit, budget or count of the tenant is touched. Exact repeats are never
explored, nor what may not be stored.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from gateway.answer import Answer, decode
from gateway.call import Call
from gateway.evidence.comparison import Comparison
from gateway.evidence.labels import LabelDesk
from gateway.evidence.recorded import key_of
from gateway.evidence.sampling import Sampling
from semantic_layer import (
    Candidate,
    Entry,
    Hit,
    Judgement,
    Label,
    Miss,
    SemanticCache,
    StoreUnavailable,
    rejection_id,
)

MAX_WAITING = 64
Source = Literal["shadow", "gray"]
Generate = Callable[[Call], Awaitable[Answer | None]]
OnCompared = Callable[[Source, str], None]


@dataclass(frozen=True, slots=True)
class _Chance:
    """A pair that may be labelled: ``fresh`` None is still to be generated."""

    source: Source
    call: Call
    judgement: Judgement
    candidate: Candidate
    weight: float
    scorer: str
    entry: Entry | None = None
    fresh: Answer | None = None
    at: float = field(default_factory=time.time)


class Gatherer:
    """A `Witness` of the pipeline; `run` does the work, one pair at a time.

    Args:
        cache: compares, and gives the stored answers.
        labels: takes what is found out.
        comparison: tells whether two answers say the same.
        generate: answers a call afresh; None when no answer comes.
        shadow: which hits are answered afresh.
        gray: which near-misses are compared.
        texts: whether labels keep the questions.
        on_compared: told the source and the verdict (right, wrong, undecided) of each pair.
    """

    def __init__(
        self,
        *,
        cache: SemanticCache,
        labels: LabelDesk,
        comparison: Comparison,
        generate: Generate,
        shadow: Sampling,
        gray: Sampling,
        texts: bool,
        on_compared: OnCompared,
    ) -> None:
        self._cache = cache
        self._labels = labels
        self._comparison = comparison
        self._generate = generate
        self._shadow = shadow
        self._gray = gray
        self._texts = texts
        self._on_compared = on_compared
        self._chances: asyncio.Queue[_Chance] = asyncio.Queue(MAX_WAITING)

    def adopt(self, comparison: Comparison, shadow: Sampling, gray: Sampling) -> None:
        """Compare and sample by these from now on."""
        self._comparison, self._shadow, self._gray = comparison, shadow, gray

    def keep_texts(self, *, texts: bool) -> None:
        """Keep the questions in labels from now on, or leave them out."""
        self._texts = texts

    def served(self, call: Call, hit: Hit) -> None:
        """Hear of a semantic hit; it may be answered afresh later."""
        if not _may_explore(call):
            return
        weight = self._shadow.taken()
        served = [c for c in hit.judgement.candidates if c.entry_id == hit.entry.entry_id]
        if weight is not None and served:
            self._offer("shadow", call, hit.judgement, served[0], weight, entry=hit.entry)

    def generated(self, call: Call, miss: Miss, answer: Answer) -> None:
        """Hear of a whole answer; it may be compared with the nearest stored one later."""
        near = _nearest(miss.judgement)
        if near is None or not _may_explore(call):
            return
        weight = self._gray.taken()
        if weight is not None:
            self._offer("gray", call, miss.judgement, near, weight, fresh=answer)

    async def run(self) -> None:
        """Compare what was taken, for ever."""
        while True:
            chance = await self._chances.get()
            try:
                await self._explore(chance)
            except StoreUnavailable:
                self._on_compared(chance.source, "failed")
            finally:
                self._chances.task_done()

    async def settled(self) -> None:
        """Wait until nothing is left to compare."""
        await self._chances.join()

    def _offer(
        self,
        source: Source,
        call: Call,
        judgement: Judgement,
        candidate: Candidate,
        weight: float,
        *,
        entry: Entry | None = None,
        fresh: Answer | None = None,
    ) -> None:
        chance = _Chance(
            source, call, judgement, candidate, weight, self._cache.scorer, entry, fresh
        )
        try:
            self._chances.put_nowait(chance)
        except asyncio.QueueFull:
            self._on_compared(source, "dropped")

    async def _explore(self, chance: _Chance) -> None:
        call, candidate = chance.call, chance.candidate
        entry = chance.entry or await self._cache.entry(call.tenant.name, candidate.entry_id)
        stored = _answer_of(entry)
        fresh = chance.fresh or (await self._generate(call) if stored is not None else None)
        if stored is None or fresh is None:
            self._on_compared(chance.source, "failed")
            return
        question = chance.judgement.text or ""
        found = await self._comparison.same(question, stored, fresh)
        if found.same is None:
            self._on_compared(chance.source, "undecided")
            return
        self._on_compared(chance.source, "right" if found.same else "wrong")
        await self._labels.add(self._label(chance, right=found.same, method=found.method))
        if chance.source == "shadow" and not found.same:
            pair = rejection_id(call.tenant.name, candidate.entry_id, question)
            await self._labels.reject(pair)

    def _label(self, chance: _Chance, *, right: bool, method: str) -> Label:
        call, candidate = chance.call, chance.candidate
        request = key_of(call.request_id, call.tenant.name)
        return Label(
            label_id=f"{chance.source}:{request}:{candidate.entry_id}",
            intent=chance.judgement.intent or "",
            score=candidate.score,
            right=right,
            source=chance.source,
            served=chance.source == "shadow",
            at=chance.at,
            tenant=call.tenant.name,
            weight=chance.weight,
            entry_id=candidate.entry_id,
            request_id=request,
            scorer=chance.scorer,
            text=(chance.judgement.text or "") if self._texts else "",
            stored_text=candidate.text if self._texts else "",
            method=method,
        )


def _may_explore(call: Call) -> bool:
    """Say whether a call leaves room to learn from it."""
    control = call.control
    return not (control.no_store or control.no_cache or control.only_if_cached)


def _nearest(judgement: Judgement) -> Candidate | None:
    """Return the candidate that only its score kept from being served."""
    near = [
        candidate
        for candidate in judgement.candidates
        if candidate.score > 0 and candidate.reasons and candidate.reasons[-1].check == "threshold"
    ]
    return max(near, key=lambda candidate: candidate.score, default=None)


def _answer_of(entry: Entry | None) -> Answer | None:
    """Return what an entry holds; None where it is gone, or another version's."""
    try:
        return decode(entry.answer) if entry is not None else None
    except msgspec.MsgspecError:
        return None
