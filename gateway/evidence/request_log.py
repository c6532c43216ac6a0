"""Recent requests with the reasons of their decisions, shared by all gateways.

Written beside the response path in batches: a request costs an append. Of a flood a share is
recorded, a second's first 20 exact repeats and first 200 others; the rest is only counted.
"""

import asyncio
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from gateway.evidence.glance import Glance
from gateway.evidence.recorded import RecordedRequest, key_of, recorded
from gateway.record import CacheOutcome, RequestRecord
from semantic_layer import Journal, Row, StoreUnavailable

REQUESTS = "requests"
MAX_WAITING = 2000
EVERY_S = 0.2
BATCH = 200
_PAGE = 500
MOST_SCANNED = 100_000
_LEVEL = 1
_PER_S = {"exact": 20, "other": 200}

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RecordedRequest).decode
_glance = msgspec.msgpack.Decoder(Glance).decode


class RequestLog:
    """Records requests, finds them again.

    Args:
        journal: where they are kept.
        most: how many are kept over all gateways; 0 keeps none.
        texts: whether words of requests and answers are kept.
        scorer: tells the fingerprint of what gives scores now.
        on_failure: told for each batch that was lost.
        clock: Unix seconds.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        most: int,
        texts: bool,
        scorer: Callable[[], str],
        on_failure: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._most = most
        self._texts = texts
        self._scorer = scorer
        self._on_failure = on_failure
        self._clock = clock
        self._waiting: deque[tuple[RequestRecord, float]] = deque()
        self._second = 0
        self._this_second: Counter[str] = Counter()
        self._flushing = asyncio.Lock()
        self.num_dropped = 0

    def keep(self, most: int, *, texts: bool) -> None:
        """Keep so many from now on, with their words or without."""
        self._most, self._texts = most, texts

    @property
    def most(self) -> int:
        """How many are kept; 0 keeps none."""
        return self._most

    @property
    def keeps_texts(self) -> bool:
        """Whether words of requests and answers are kept."""
        return self._texts

    def record(self, record: RequestRecord) -> None:
        """Take note of a request that ended; written soon."""
        if not self._most:
            return
        now = self._clock()
        if self._has_room(now, record.outcome):
            self._waiting.append((record, now))
        else:
            self.num_dropped += 1

    async def run(self) -> None:
        """Write what waits, for ever."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.flush()

    async def flush(self) -> None:
        """Write what waits now. Never raises for the store."""
        async with self._flushing:
            while self._waiting:
                count = min(BATCH, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(count)]
                try:
                    await self._write(batch)
                except StoreUnavailable:
                    self.num_dropped += len(batch)
                    self._on_failure()

    async def get(self, request_id: str, tenants: Sequence[str]) -> RecordedRequest | None:
        """Return the latest request of this id that one of the tenants made.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        await self.flush()
        keys = [key_of(request_id, tenant) for tenant in tenants]
        rows = await self._journal.get(REQUESTS, [request_id, *keys])
        found = [row for row in rows if row is not None and row.data]
        return _read(max(found, key=lambda row: row.seq)) if found else None

    async def select(
        self,
        fits: Callable[[Glance], bool],
        *,
        before: int | None = None,
        limit: int,
        since: float = 0.0,
        scanned: int = MOST_SCANNED,
    ) -> tuple[list[RecordedRequest], int | None]:
        """Return the next fitting requests, newest first, and where the following ones begin.

        Looks at ``scanned`` requests at most, so that fewer than ``limit`` may be found with more
        to come.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        await self.flush()
        found: list[RecordedRequest] = []
        num_seen = 0
        while num_seen < scanned:
            rows = await self._journal.before(REQUESTS, before, _PAGE)
            chosen, is_past = await asyncio.to_thread(_choose, rows, fits, since)
            room = limit - len(found)
            found += filter(None, map(_read, chosen[:room]))
            if len(chosen) >= room and chosen:
                return found, chosen[room - 1].seq
            if is_past or len(rows) < _PAGE:
                return found, None
            before = rows[-1].seq
            num_seen += len(rows)
        return found, before

    async def newest(self, most: int) -> list[Glance]:
        """Return the newest requests at a glance, newest first; read beside the event loop.

        Raises:
            StoreUnavailable: the store is slow or down.
        """
        await self.flush()
        found: list[Glance] = []
        before: int | None = None
        while len(found) < most:
            rows = await self._journal.before(REQUESTS, before, min(_PAGE, most - len(found)))
            if not rows:
                break
            found += [told for _, told in await asyncio.to_thread(_glances, rows)]
            before = rows[-1].seq
        return found

    def _has_room(self, now: float, outcome: CacheOutcome) -> bool:
        second = int(now)
        if second != self._second:
            self._second = second
            self._this_second.clear()
        kind = "exact" if outcome == "exact" else "other"
        self._this_second[kind] += 1
        return self._this_second[kind] <= _PER_S[kind] and len(self._waiting) < MAX_WAITING

    async def _write(self, batch: Sequence[tuple[RequestRecord, float]]) -> None:
        scorer = self._scorer()
        requests = [recorded(record, at, scorer, texts=self._texts) for record, at in batch]
        rows = {request.key: zlib.compress(_encode(request), _LEVEL) for request in requests}
        await self._journal.put(REQUESTS, rows, most=self._most)


def _read(row: Row) -> RecordedRequest | None:
    """Return a request; None for what another version wrote."""
    try:
        return _decode(zlib.decompress(row.data))
    except (zlib.error, msgspec.MsgspecError):
        return None


def _glances(rows: Sequence[Row]) -> list[tuple[Row, Glance]]:
    """Return what can be read of the rows, in their order."""
    found: list[tuple[Row, Glance]] = []
    for row in rows:
        with suppress(zlib.error, msgspec.MsgspecError):
            found.append((row, _glance(zlib.decompress(row.data))))
    return found


def _choose(
    rows: Sequence[Row], fits: Callable[[Glance], bool], since: float
) -> tuple[list[Row], bool]:
    """Return the rows that fit and are not older than ``since``, and whether older ones came."""
    chosen: list[Row] = []
    for row, told in _glances(rows):
        if told.at < since:
            return chosen, True
        if fits(told):
            chosen.append(row)
    return chosen, False
