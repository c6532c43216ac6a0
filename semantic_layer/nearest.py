"""The nearest entries of a look-up, judged: search, fetch, fit, decide. Knows no exact repeats."""

from semantic_layer.decision import Decision, Found, Judge
from semantic_layer.errors import StoreUnavailable
from semantic_layer.guarded import GuardedParts, Stopwatch
from semantic_layer.lookup import Lookup
from semantic_layer.outcome import Reason
from semantic_layer.policy import CachePolicy
from semantic_layer.rejections import Rejections
from semantic_layer.talk import HistoryFitter
from semantic_layer.thresholds import Thresholds


class NearestSearch:
    """Finds the entry that may answer a text that was read and embedded."""

    def __init__(
        self, parts: GuardedParts, policy: CachePolicy, judge: Judge, rejections: Rejections
    ) -> None:
        self._parts = parts
        self.policy = policy
        self._judge = judge
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
        for limit in (self.policy.top_k, self.policy.top_k_wide):
            try:
                decision, exhausted = await self._search(look, thresholds, limit, watch)
            except StoreUnavailable as error:
                look.reasons.append(Reason("search", "skip", str(error)))
                break
            if exhausted or decision.entry is not None:
                break
        return decision

    async def _search(
        self, look: Lookup, thresholds: Thresholds, limit: int, watch: Stopwatch
    ) -> tuple[Decision, bool]:
        assert look.embedding is not None, "searching without a vector"
        assert look.scope is not None, "searching without a scope"
        tenant = look.query.tenant
        near = await self._parts.search(
            look.embedding, tenant=tenant, scope=look.scope, now=look.now, limit=limit
        )
        entries = await self._parts.get_many(tenant, [n.entry_id for n in near]) if near else []
        watch.lap("search")
        found: list[Found] = []
        look.rejected = []
        for neighbour, entry in zip(near, entries, strict=True):
            if entry is None or not look.may_lead_to(entry):
                look.stale.append(neighbour.entry_id)
            elif self._rejections.holds(tenant, entry.entry_id, look.text or ""):
                look.reject(entry, neighbour.similarity)
            else:
                fit = await self._fitter.fit(look.asked_chat, entry)
                own = look.threshold_of(entry.entry_id, thresholds)
                found.append(Found(neighbour.similarity, entry, look.is_young(entry), fit, own))
        assert look.text is not None, "searching without a text"
        assert look.threshold is not None, "searching without a threshold"
        decision = await self._judge.decide(look.text, look.threshold, found)
        watch.lap("verify")
        done = len(near) < limit or near[-1].similarity < self._judge.least_similarity
        return decision, done
