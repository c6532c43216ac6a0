"""Puts stored entries that have no vector back where likeness looks: after a change of embedder.

An index holds the vectors of one embedder only, so a new one begins empty. Entries are embedded
anew beside the traffic; what has a vector is left alone, so a broken walk is simply begun again.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semantic_layer.chats.conversation import chat_of
from semantic_layer.entry import Entry
from semantic_layer.errors import StoreUnavailable, TextTooLong
from semantic_layer.guarded import GuardedParts
from semantic_layer.stores.response_store import Selector
from semantic_layer.upkeep import Upkeep
from semantic_layer.writer import point_of

_PAGE = 32
_PAUSE_S = 0.02  # between pages: traffic goes first
_RETRY_S = 5.0
_EVERYTHING = Selector(everything=True)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the walk is; ``num_embedded`` of what it has seen had no vector."""

    num_seen: int = 0
    num_embedded: int = 0
    is_done: bool = False


class Reembedder:
    """Walks all entries once, newest first; starts over from the newest where a part fails."""

    def __init__(self, parts: GuardedParts, upkeep: Upkeep, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._upkeep = upkeep
        self._clock = clock
        self.progress = Progress()

    async def run(self) -> None:
        """Walk until all that likeness may find can be found; then remove the old collections."""
        num_retired = None
        while num_retired is None:
            try:
                if not self.progress.is_done:
                    await self._walk()
                num_retired = await self._parts.retire_others(self._clock())
            except StoreUnavailable as error:
                _log.info("re-embedding waits: %s", error)
                await asyncio.sleep(_RETRY_S)
        if self.progress.num_embedded:
            _log.info("entries embedded anew: %d", self.progress.num_embedded)
        if num_retired:
            _log.info("collections of other embedders removed: %d", num_retired)

    async def _walk(self) -> None:
        cursor, num_seen = None, 0
        while True:
            page = await self._upkeep.browse(_EVERYTHING, cursor, _PAGE)
            num_embedded = await self.mend(page.entries)
            num_seen += len(page.entries)
            self.progress = Progress(
                num_seen, self.progress.num_embedded + num_embedded, page.cursor is None
            )
            if page.cursor is None:
                return
            cursor = page.cursor
            await asyncio.sleep(_PAUSE_S)

    async def mend(self, entries: Sequence[Entry]) -> int:
        """Embed the entries of a page that likeness should find and does not."""
        by_tenant: dict[str, dict[str, Entry]] = defaultdict(dict)
        now = self._clock()
        for entry in entries:
            if entry.scope is not None and not entry.exact_only and not entry.is_stale(now):
                by_tenant[entry.tenant][entry.entry_id] = entry
        num_embedded = 0
        for tenant, wanted in by_tenant.items():
            for entry_id in await self._parts.missing(tenant, list(wanted)):
                num_embedded += await self._embed(wanted[entry_id])
        return num_embedded

    async def _embed(self, entry: Entry) -> bool:
        assert entry.scope is not None, "entries without a scope are left out"
        try:
            vector = await self._parts.embed(chat_of(entry).resolved)
        except TextTooLong:
            return False
        if await self._parts.get(entry.tenant, entry.entry_id) is None:  # gone meanwhile
            return False
        await self._parts.upsert(point_of(entry, entry.scope, vector))
        return True
