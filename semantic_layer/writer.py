"""Writes answers to both stores; decides whether they may be kept so, and for how long."""

from collections.abc import Callable, Mapping

import msgspec

from semantic_layer.beside import beside_loop
from semantic_layer.canonical import request_fields
from semantic_layer.entry import Entry
from semantic_layer.guarded import GuardedParts
from semantic_layer.outcome import Miss
from semantic_layer.policy import CachePolicy
from semantic_layer.privacy import private_kind
from semantic_layer.request import CacheControl, CacheQuery
from semantic_layer.stores.vector_index import Point, Vector
from semantic_layer.upkeep import Upkeep


class EntryWriter:
    """Makes entries of missed requests and puts them where look-ups find them.

    ``ttl_by_intent_s`` comes before the policy's times to live, and after a request's own.
    """

    def __init__(
        self,
        parts: GuardedParts,
        policy: CachePolicy,
        clock: Callable[[], float],
        upkeep: Upkeep,
        on_private: Callable[[str], None],
    ) -> None:
        self.ttl_by_intent_s: Mapping[str, float] = {}
        self._parts = parts
        self.policy = policy
        self._clock = clock
        self._upkeep = upkeep
        self._on_private = on_private

    async def write(
        self,
        query: CacheQuery,
        control: CacheControl,
        miss: Miss,
        answer: bytes,
        *,
        answer_text: str,
        exact_only: bool,
    ) -> str | None:
        """Keep an answer and return its id; None when it is private, withdrawn or lives no time.

        Raises:
            StoreUnavailable: a part is slow or down.
        """
        if await self._is_private(query, miss.text, answer_text):
            if self.policy.private == "skip":
                return None
            exact_only = True
        now = self._clock()
        ttl_s = self._ttl_of(miss.judgement.intent, control.ttl_s)
        stale_s = self.policy.stale_of(miss.judgement.intent, control.ttl_s)
        if control.max_ttl_s is not None:
            ttl_s = min(ttl_s, control.max_ttl_s)
            stale_s = min(stale_s, control.max_ttl_s - ttl_s)
        if ttl_s <= 0:
            return None
        entry = Entry(
            entry_id=miss.key,
            tenant=query.tenant,
            namespace=query.namespace,
            model=query.model,
            model_fingerprint=query.model_fingerprint,
            answer=answer,
            created_at=now,
            expires_at=now + ttl_s + stale_s,
            fresh_until=now + ttl_s if stale_s > 0 else None,
            intent=miss.judgement.intent,
            scope=miss.scope,
            text=miss.text,
            answer_text=answer_text,
            exact_only=exact_only,
            tags=control.tags,
            context=control.context,
            query=control.query_text,
            restated=miss.restated,
            request=await beside_loop(query.num_bytes, _canonical, query),
        )
        age_s = 0.0 if miss.asked_at is None else self._clock() - miss.asked_at
        if not await self._parts.put(entry, age_s):
            return None
        if miss.scope is not None and miss.embedding is not None and not exact_only:
            await self._parts.upsert(point_of(entry, miss.scope, miss.embedding))
        if self.policy.max_entries:
            await self._upkeep.trim(self.policy.max_entries)
        return entry.entry_id

    async def _is_private(self, query: CacheQuery, asked: str | None, answer_text: str) -> bool:
        if self.policy.private == "store":
            return False
        kind = await private_kind(query, asked, answer_text)
        if kind is not None:
            self._on_private(kind)
        return kind is not None

    def _ttl_of(self, intent: str | None, asked_s: float | None) -> float:
        own_s = self.ttl_by_intent_s.get(intent or "")
        if asked_s is None and own_s is not None:
            return own_s
        return self.policy.ttl_of(intent, asked_s)


def _canonical(query: CacheQuery) -> bytes:
    return msgspec.json.encode(request_fields(query.request))


def point_of(entry: Entry, scope: str, vector: Vector) -> Point:
    """Return the entry's point, found while the entry is fresh."""
    until = entry.expires_at if entry.fresh_until is None else entry.fresh_until
    return Point(entry.entry_id, entry.tenant, scope, entry.intent, until, entry.tags, vector)
