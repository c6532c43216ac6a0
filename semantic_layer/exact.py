"""Reads exact repeats; a store that is slow or down has none. Knows no texts and no scopes."""

from collections.abc import Sequence

from semantic_layer.entry import Entry
from semantic_layer.errors import StoreUnavailable
from semantic_layer.guarded import GuardedParts
from semantic_layer.lookup import Lookup
from semantic_layer.outcome import Reason

READ_AT_ONCE = 64


class ExactReader:
    """Finds the entries that answer exactly the requests looked up."""

    def __init__(self, parts: GuardedParts) -> None:
        self._parts = parts

    async def one(self, look: Lookup) -> Entry | None:
        """Read one entry; why there is none to be had is added to the look-up's reasons."""
        try:
            entry = await self._parts.get(look.query.tenant, look.key)
        except StoreUnavailable as error:
            look.reasons.append(Reason("exact", "skip", str(error)))
            return None
        return _fitting(look, entry)

    async def many(self, looks: Sequence[Lookup]) -> list[Entry | None]:
        """Read the entries of one tenant's look-ups, few round trips for all."""
        entries: list[Entry | None] = []
        try:
            for start in range(0, len(looks), READ_AT_ONCE):
                batch = looks[start : start + READ_AT_ONCE]
                keys = [look.key for look in batch]
                entries += await self._parts.get_many(batch[0].query.tenant, keys)
        except StoreUnavailable:
            entries += [None] * (len(looks) - len(entries))
        return [_fitting(look, entry) for look, entry in zip(looks, entries, strict=True)]


def _fitting(look: Lookup, entry: Entry | None) -> Entry | None:
    return entry if entry is not None and look.is_repeated_by(entry) else None
