"""Writes answers to both stores; decides nothing but how long they live."""

from collections.abc import Callable

import msgspec

from semantic_layer.canonical import request_fields
from semantic_layer.entry import Entry
from semantic_layer.guarded import GuardedParts
from semantic_layer.outcome import Miss
from semantic_layer.policy import CachePolicy
from semantic_layer.request import CacheControl, CacheQuery
from semantic_layer.vector_index import Point, Vector


class EntryWriter:
    """Makes entries of missed requests and puts them where look-ups find them."""

    def __init__(
        self, parts: GuardedParts, policy: CachePolicy, clock: Callable[[], float]
    ) -> None:
        self._parts = parts
        self._policy = policy
        self._clock = clock

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
        """Keep an answer and return its id; None when its time to live is nothing.

        Raises:
            StoreUnavailable: a part is slow or down.
        """
        now = self._clock()
        ttl_s = self._policy.ttl_of(miss.judgement.intent, control.ttl_s)
        stale_s = self._policy.stale_of(miss.judgement.intent, control.ttl_s)
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
            request=msgspec.json.encode(request_fields(query.request)),
        )
        await self._parts.put(entry)
        if miss.scope is not None and miss.embedding is not None and not exact_only:
            await self._parts.upsert(point_of(entry, miss.scope, miss.embedding))
        return entry.entry_id


def point_of(entry: Entry, scope: str, vector: Vector) -> Point:
    """Return the entry's point, found while the entry is fresh."""
    until = entry.expires_at if entry.fresh_until is None else entry.fresh_until
    return Point(entry.entry_id, entry.tenant, scope, entry.intent, until, entry.tags, vector)
