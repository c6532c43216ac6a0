"""Entries in Redis or Valkey.

Keys under a prefix, each with a TTL:
    {tenant}:e:<id>      one entry, gone at its ``expires_at``
    {tenant}:created     sorted set of the tenant's members by ``created_at``
    created, t:<tag>     the same over all tenants, and per tag
    expiry               sorted set of all members by ``expires_at``
    withdrawn            sorted set of selectors by when they withdrew what was on its way
    indexes              set of the sorted sets above, for the sweep

The server should run with ``noeviction``: when it is full, the entries closest to their end are
dropped here together with their places in the indexes. A server that evicts by itself may drop an
index, and a tag's index lost means entries that an invalidation by tag does not find.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import ceil
from typing import Any

from semantic_layer.beside import beside_loop
from semantic_layer.entry import Entry
from semantic_layer.errors import EntryCorrupt
from semantic_layer.stores.redis_connection import RedisConnection, StoreFull
from semantic_layer.stores.response_store import scripts
from semantic_layer.stores.response_store.base import WITHDRAWN_S, Named, Page, Room, Selector
from semantic_layer.stores.response_store.codec import EntryCodec
from semantic_layer.stores.response_store.cursor import Position, decode_cursor, encode_cursor
from semantic_layer.stores.response_store.keys import (
    Keys,
    member_name,
    names_text,
    parse_member,
    selector_text,
)
from semantic_layer.stores.sealing import Sealer, entry_place

_KEEPS = "noeviction"
_CHUNK = 64  # entries fetched at once while browsing
_SCAN_LIMIT = 10_000  # members looked at for one page
_SWEEP_RANKS = 500  # members looked at by one script call
_SWEEP_BATCH = 64  # script calls in one round trip
_EVICTED_AT_ONCE = 64
_LEAST_SAMPLE = 32


class RedisResponseStore:
    """A `ResponseStore` over ``redis://``, ``rediss://`` or ``unix://``.

    ``on_reject`` is told why a stored value was read as absent: ``corrupt`` or ``misplaced``.
    Entries are sealed where there is a ``sealer``. TTLs
    are counted from this process's clock, and reads check ``expires_at``, so the server's clock
    does not matter.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_timeout_s: float = 1.0,
        command_timeout_s: float = 1.0,
        wait_s: float = 0.5,
        max_connections: int = 32,
        prefix: str = "strata",
        on_reject: Callable[[str], None] | None = None,
        sealer: Sealer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connection = RedisConnection(
            url,
            connect_timeout_s=connect_timeout_s,
            command_timeout_s=command_timeout_s,
            wait_s=wait_s,
            max_connections=max_connections,
        )
        self._redis = self._connection.client
        self._run, self._execute = self._connection.run, self._connection.execute
        self._keys = Keys(prefix)
        self._on_reject = on_reject
        self._codec = EntryCodec(sealer)
        self._clock = clock
        self._put = self._redis.register_script(scripts.PUT)
        self._unlink = self._redis.register_script(scripts.UNLINK)
        self._withdraw = self._redis.register_script(scripts.WITHDRAW)
        self._is_withdrawn = self._redis.register_script(scripts.IS_WITHDRAWN)
        self._prune = self._redis.register_script(scripts.PRUNE)

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Return the live entry, or None. One round trip."""
        key = self._keys.entry(tenant, entry_id)
        value = await self._run(lambda: self._redis.get(key))
        return self._live(value, tenant, entry_id)

    async def get_many(self, tenant: str, entry_ids: Sequence[str]) -> list[Entry | None]:
        """Return one result per id, in order. One round trip."""
        return await self._fetch([(tenant, entry_id) for entry_id in entry_ids])

    async def put(self, entry: Entry, age_s: float = 0.0) -> bool:
        """Keep the entry until its ``expires_at``, unless it has been withdrawn. One round trip."""
        ttl_ms = ceil((entry.expires_at - self._clock()) * 1000)
        if ttl_ms <= 0:
            await self.delete(entry.tenant, [entry.entry_id])
            return False
        keys, member = self._keys, member_name(entry.tenant, entry.entry_id)
        names = [keys.entry(entry.tenant, entry.entry_id), keys.registry, keys.expiry]
        names.append(keys.withdrawn)
        names += self._indexes_by_creation(entry.tenant, entry.tags)
        value = await beside_loop(len(entry.request), self._codec.encode, entry)
        values: list[Any] = [value, ttl_ms]
        values += [repr(entry.created_at), repr(entry.expires_at), member]
        values += [_microseconds(age_s), names_text(entry)]
        return bool(await self._written(lambda: self._put(keys=names, args=values)))

    async def withdraw(self, selector: Selector) -> None:
        """Have answers of these names that are on their way now never be kept."""
        args = [selector_text(selector), round(WITHDRAWN_S * 1000)]
        await self._written(lambda: self._withdraw(keys=[self._keys.withdrawn], args=args))

    async def is_withdrawn(self, answer: Named, age_s: float) -> bool:
        """Say whether an answer was withdrawn within the last ``age_s``. One round trip."""
        args = [_microseconds(age_s), names_text(answer)]
        keys = [self._keys.withdrawn]
        return bool(await self._run(lambda: self._is_withdrawn(keys=keys, args=args)))

    async def delete(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Forget these entries; return the ids that existed."""
        if not entry_ids:
            return []
        names = [self._keys.entry(tenant, entry_id) for entry_id in entry_ids]
        pipeline = self._redis.pipeline(transaction=False)
        for name in names:
            pipeline.get(name)
            pipeline.delete(name)
        replies = await self._execute(pipeline)
        values, existed = replies[::2], replies[1::2]
        entries = [
            self._live(value, tenant, entry_id)
            for value, entry_id in zip(values, entry_ids, strict=True)
        ]
        pipeline = self._redis.pipeline(transaction=False)
        for name, entry_id, entry in zip(names, entry_ids, entries, strict=True):
            indexes = self._indexes_by_creation(tenant, entry.tags if entry else ())
            await self._unlink(
                keys=[name, self._keys.expiry, *indexes],
                args=[member_name(tenant, entry_id)],
                client=pipeline,
            )
        await self._execute(pipeline)
        return [entry_id for entry_id, hit in zip(entry_ids, existed, strict=True) if hit]

    async def select(self, selector: Selector, *, cursor: str | None, limit: int) -> Page:
        """Return a page of matching live entries, newest first."""
        position = decode_cursor(cursor)
        if selector.is_empty:
            return Page(())
        index, found, num_seen = self._index_for(selector), list[Entry](), 0
        while num_seen < _SCAN_LIMIT:
            places = await self._places_after(index, position)
            entries = await self._fetch_selected(places, selector)
            for place in places:
                position = place
                entry = entries.get(place.member)
                if entry is not None and selector.matches(entry):
                    found.append(entry)
                    if len(found) == limit:
                        at_end = place is places[-1] and len(places) < _CHUNK
                        return Page(tuple(found), None if at_end else encode_cursor(place))
            if len(places) < _CHUNK or position is None:
                return Page(tuple(found))
            num_seen += len(places)
        assert position is not None
        return Page(tuple(found), encode_cursor(position))

    async def count(self) -> int:
        """Return the number of live entries."""
        now = repr(self._clock())
        return int(await self._run(lambda: self._redis.zcount(self._keys.expiry, f"({now}", "inf")))

    async def least_used(self, num: int) -> list[tuple[str, str]]:
        """Return the tenant and id of so many entries that were used longest ago.

        As Redis itself evicts, the longest idle of a sample; half of it are the oldest.
        """
        size = max(_LEAST_SAMPLE, 2 * num)
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.zrange(self._keys.created, 0, size - 1)
        pipeline.zrandmember(self._keys.created, size)
        oldest, some = await self._execute(pipeline)
        members = [parse_member(m.decode()) for m in dict.fromkeys([*oldest, *some])]
        pipeline = self._redis.pipeline(transaction=False)
        for tenant, entry_id in members:
            pipeline.object("IDLETIME", self._keys.entry(tenant, entry_id))
        idle = await self._execute(pipeline)
        by_idle = sorted(zip(idle, members, strict=True), key=lambda pair: -(pair[0] or 0))
        return [member for _, member in by_idle[:num]]

    async def sweep(self, now: float) -> int:
        """Drop entries expired by ``now`` and index members whose entry is gone."""
        removed = 0
        while members := await self._run(
            lambda: self._redis.zrangebyscore(
                self._keys.expiry, "-inf", repr(now), start=0, num=_SWEEP_RANKS
            )
        ):
            await self._forget(members)
            removed += len(members)
        return removed + await self._prune_indexes()

    async def room(self) -> Room | None:
        """Tell how full the server's memory is, as its ``INFO`` has it."""
        memory = await self._run(lambda: self._redis.info("memory"))
        stats = await self._run(lambda: self._redis.info("stats"))
        return Room(
            used_bytes=int(memory["used_memory"]),
            limit_bytes=int(memory.get("maxmemory", 0)),
            drops_entries=memory.get("maxmemory_policy", _KEEPS) != _KEEPS,
            num_dropped=int(stats.get("evicted_keys", 0)),
        )

    async def ping(self) -> None:
        """Return when the server answers."""
        await self._run(self._redis.ping)

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    def _live(self, value: bytes | None, tenant: str, entry_id: str) -> Entry | None:
        if value is None:
            return None
        try:
            entry = self._codec.decode(value, entry_place(tenant, entry_id))
        except EntryCorrupt:
            self._reject("corrupt")
            return None
        if (entry.tenant, entry.entry_id) != (tenant, entry_id):
            self._reject("misplaced")
            return None
        return entry if entry.expires_at > self._clock() else None

    def _reject(self, why: str) -> None:
        if self._on_reject is not None:
            self._on_reject(why)

    async def _fetch(self, names: Sequence[tuple[str, str]]) -> list[Entry | None]:
        if not names:
            return []
        keys = [self._keys.entry(tenant, entry_id) for tenant, entry_id in names]
        values = await self._run(lambda: self._redis.mget(keys))
        return [self._live(value, *name) for value, name in zip(values, names, strict=True)]

    async def _fetch_selected(
        self, places: Iterable[Position], selector: Selector
    ) -> dict[str, Entry | None]:
        """Fetch what the member's name alone does not exclude."""
        wanted = dict[str, tuple[str, str]]()
        for place in places:
            tenant, entry_id = parse_member(place.member)
            if selector.tenant in (None, tenant) and selector.entry_id in (None, entry_id):
                wanted[place.member] = (tenant, entry_id)
        return dict(zip(wanted, await self._fetch(list(wanted.values())), strict=True))

    def _indexes_by_creation(self, tenant: str, tags: Iterable[str]) -> list[str]:
        keys = self._keys
        return [keys.created, keys.tenant(tenant), *(keys.tag(tag) for tag in tags)]

    def _index_for(self, selector: Selector) -> str:
        if selector.tag is not None:
            return self._keys.tag(selector.tag)
        if selector.tenant is not None:
            return self._keys.tenant(selector.tenant)
        return self._keys.created

    async def _places_after(self, index: str, position: Position | None) -> list[Position]:
        """Return the next members of an index, at most `_CHUNK`; fewer only at its end."""
        rank = 0 if position is None else await self._rank_after(index, position)
        while True:
            places = await self._places_from(index, rank)
            fresh = [place for place in places if position is None or place.is_after(position)]
            if len(fresh) == len(places) or len(places) < _CHUNK:
                return fresh
            rank += len(places) - len(fresh)

    async def _places_from(self, index: str, rank: int) -> list[Position]:
        pairs = await self._run(
            lambda: self._redis.zrevrange(index, rank, rank + _CHUNK - 1, withscores=True)
        )
        return [Position(score, member.decode()) for member, score in pairs]

    async def _rank_after(self, index: str, position: Position) -> int:
        """Return the rank after this place, or the first of its score when its member is gone."""
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.zscore(index, position.member)
        pipeline.zrevrank(index, position.member)
        pipeline.zcount(index, f"({position.created_at!r}", "inf")
        score, rank, num_newer = await self._execute(pipeline)
        return int(rank) + 1 if score == position.created_at else int(num_newer)

    async def _forget(self, members: Iterable[bytes]) -> None:
        by_tenant = dict[str, list[str]]()
        for member in members:
            tenant, entry_id = parse_member(member.decode())
            by_tenant.setdefault(tenant, []).append(entry_id)
        for tenant, entry_ids in by_tenant.items():
            await self.delete(tenant, entry_ids)

    async def _written(self, write: Callable[[], Awaitable[Any]]) -> Any:
        """Write, where the server is full after making room."""
        try:
            return await self._run(write)
        except StoreFull:
            await self._make_room()
            return await self._run(write)

    async def _make_room(self) -> None:
        members = await self._run(
            lambda: self._redis.zrange(self._keys.expiry, 0, _EVICTED_AT_ONCE - 1)
        )
        await self._forget(members)

    async def _prune_indexes(self) -> int:
        """Walk every index; return how many entries were found to be gone."""
        names = await self._run(lambda: self._redis.smembers(self._keys.registry))
        walks = [(name.decode(), 0) for name in names]
        removed = 0
        while walks:
            batch, walks = walks[:_SWEEP_BATCH], walks[_SWEEP_BATCH:]
            pipeline = self._redis.pipeline(transaction=False)
            for index, rank in batch:
                await self._prune(
                    keys=[index, self._keys.registry],
                    args=[self._keys.prefix, rank, _SWEEP_RANKS],
                    client=pipeline,
                )
            replies = await self._execute(pipeline)
            for (index, rank), (num_seen, num_dead) in zip(batch, replies, strict=True):
                removed += num_dead if index == self._keys.expiry else 0
                if num_seen == _SWEEP_RANKS:
                    walks.append((index, rank + num_seen - num_dead))
        return removed


def _microseconds(seconds: float) -> int:
    return max(0, round(seconds * 1e6))
