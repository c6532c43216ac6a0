"""Puts entries of a backup back as they were: age, end and all; vectors are made anew."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semantic_layer.entry import Entry
from semantic_layer.guarded import GuardedParts
from semantic_layer.reembedding import Reembedder


@dataclass(frozen=True, slots=True)
class Restored:
    """How many entries were written, were there already as new or newer, or have expired."""

    num_written: int = 0
    num_kept: int = 0
    num_expired: int = 0


class Restorer:
    """Writes whole entries to both stores; ``reembedder`` gives them vectors.

    Without an embedder they are exact repeats until a gateway with one starts.
    """

    def __init__(
        self, parts: GuardedParts, reembedder: Reembedder, clock: Callable[[], float]
    ) -> None:
        self._parts = parts
        self._reembedder = reembedder
        self._clock = clock

    @property
    def embedder(self) -> str | None:
        """The fingerprint of what gives vectors here."""
        return None if self._parts.embedder is None else self._parts.embedder.fingerprint

    async def put(self, entries: Sequence[Entry]) -> Restored:
        """Write those that have not expired and of which the stores hold none as new.

        Raises:
            StoreUnavailable: a part is slow or down; some entries may be written already.
        """
        now = self._clock()
        live = [entry for entry in entries if entry.expires_at > now]
        held = await self._held(live)
        fresh = [
            entry
            for entry in live
            if held.get((entry.tenant, entry.entry_id), -1.0) < entry.created_at
        ]
        for entry in fresh:
            if (entry.tenant, entry.entry_id) in held:
                await self._parts.drop_points(entry.tenant, [entry.entry_id])
            await self._parts.put(entry)
        if self._parts.embedder is not None:
            await self._reembedder.mend(live)
        return Restored(len(fresh), len(live) - len(fresh), len(entries) - len(live))

    async def _held(self, entries: Sequence[Entry]) -> dict[tuple[str, str], float]:
        """Return when the entries that are there were made."""
        by_tenant: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            by_tenant[entry.tenant].append(entry.entry_id)
        made = {}
        for tenant, ids in by_tenant.items():
            for held in await self._parts.get_many(tenant, ids):
                if held is not None:
                    made[tenant, held.entry_id] = held.created_at
        return made
