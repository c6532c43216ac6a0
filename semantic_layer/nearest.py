"""The nearest entries of a look-up, judged: search, fetch, fit, decide. Knows no exact repeats."""

import asyncio
from collections.abc import Sequence

from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.chats.chat import Chat
from semantic_layer.chats.conversation import chat_of
from semantic_layer.chats.histories import Fit
from semantic_layer.chats.talk import HistoryFitter
from semantic_layer.decision import Decision, Judge
from semantic_layer.entry import Entry
from semantic_layer.errors import StoreUnavailable
from semantic_layer.guarded import GuardedParts, Stopwatch
from semantic_layer.lookup import Lookup
from semantic_layer.outcome import Reason
from semantic_layer.policy import CachePolicy
from semantic_layer.rejections import Rejections
from semantic_layer.stores.vector_index import Neighbour
from semantic_layer.weighing import Found

MOST_COMPARED = 200  # messages of stored chats that one look-up compares its own with


class NearestSearch:
    """Finds the entry that may answer a text that was read and embedded."""

    def __init__(
        self, parts: GuardedParts, policy: CachePolicy, judge: Judge, rejections: Rejections
    ) -> None:
        self._parts = parts
        self.policy = policy
        self._judge = judge
        self._dry_judge = judge.dry()
        self._rejections = rejections
        self._fitter = HistoryFitter(parts)

    async def of(self, look: Lookup, thresholds: Thresholds, watch: Stopwatch) -> Decision | None:
        """Judge the nearest entries; look further when none of the first may be served.

        None where there is nothing to judge: semantic hits are off, or a part is down.
        """
        if look.intent in thresholds.off:
            look.reasons.append(Reason("intent", "skip", f"{look.intent}: exact repeats only"))
            return None
        decision: Decision | None = None
        seen: set[str] = set()
        for limit in (self.policy.top_k, self.policy.top_k_wide):
            try:
                near = await self._search(look, limit)
                new = [n for n in near if n.entry_id not in seen]
                found = await self._fetch(look, thresholds, new)
                watch.lap("search")
                decision = await self._decide(look, found, decision)
                watch.lap("verify")
            except StoreUnavailable as error:
                look.reasons.append(Reason("search", "skip", str(error)))
                break
            seen.update(n.entry_id for n in near)
            if decision.is_final or self._is_exhausted(look, near, limit):
                break
        return decision

    def _is_exhausted(self, look: Lookup, near: Sequence[Neighbour], limit: int) -> bool:
        """Say whether nothing that is worth a look lies farther away."""
        judge = self._judge
        least = judge.least_similarity if look.asked_chat.history else judge.least_verified
        return len(near) < limit or near[-1].similarity < least

    async def _search(self, look: Lookup, limit: int) -> list[Neighbour]:
        assert look.embedding is not None, "searching without a vector"
        assert look.scope is not None, "searching without a scope"
        return await self._parts.search(
            look.embedding,
            tenant=look.query.tenant,
            scope=look.scope,
            now=look.now,
            limit=limit,
        )

    async def _fetch(
        self, look: Lookup, thresholds: Thresholds, near: Sequence[Neighbour]
    ) -> list[Found]:
        """Read the entries; note those that are gone and those that a person found wrong."""
        tenant = look.query.tenant
        entries = await self._parts.get_many(tenant, [n.entry_id for n in near]) if near else []
        found: list[Found] = []
        for neighbour, entry in zip(near, entries, strict=True):
            if entry is None or not look.may_lead_to(entry):
                look.stale.append(neighbour.entry_id)
            elif self._rejections.holds(tenant, entry.entry_id, look.text or ""):
                look.reject(entry, neighbour.similarity)
            else:
                fit = await self._fit(look, entry)
                own = look.threshold_of(entry.entry_id, thresholds)
                found.append(Found(neighbour.similarity, entry, look.is_young(entry), fit, own))
        return found

    async def _fit(self, look: Lookup, entry: Entry) -> Fit | None:
        """Compare two chats, after others had their turn: a long one takes some milliseconds."""
        chat, stored = look.asked_chat, chat_of(entry)
        if not (chat.history or stored.history):
            return None
        if _is_costly(chat, stored):
            if look.num_compared + len(stored.history) > max(MOST_COMPARED, len(stored.history)):
                too_many = Reason("history", "veto", "not compared: enough were that are nearer")
                return Fit(0.0, too_many, (chat.text, stored.text))
            look.num_compared += len(stored.history)
            await asyncio.sleep(0)
        return await self._fitter.fit(chat, stored)

    async def _decide(
        self, look: Lookup, found: Sequence[Found], before: Decision | None
    ) -> Decision:
        assert look.text is not None, "searching without a text"
        assert look.threshold is not None, "searching without a threshold"
        judge = self._dry_judge if look.is_dry else self._judge
        weighed = () if before is None else before.weighed
        return await judge.decide(look.text, look.threshold, found, weighed)


def _is_costly(one: Chat, other: Chat) -> bool:
    """Say whether two chats can be told apart only by what was said before."""
    return one.alone == other.alone and one.dependence.reply == other.dependence.reply
