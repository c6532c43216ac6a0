"""What a response store does, whatever keeps the bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from semantic_layer.entry import Entry


class Named(Protocol):
    """What a selector knows an answer by, kept or still on its way."""

    @property
    def tenant(self) -> str:
        """Whose it is."""
        ...

    @property
    def namespace(self) -> str:
        """The space inside the tenant."""
        ...

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def entry_id(self) -> str:
        """The id it has, or will have."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """What it can be invalidated by."""
        ...


WITHDRAWN_S = 7200.0  # no answer is longer on its way


@dataclass(frozen=True, slots=True)
class Names:
    """The names of an answer that is still on its way."""

    tenant: str
    namespace: str
    model: str
    entry_id: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """Which entries are meant: all given fields must match; no field selects nothing.

    ``text`` is a case-insensitive part of the entry's text or answer text. ``everything`` selects
    all entries that the other fields do not exclude.
    """

    tenant: str | None = None
    namespace: str | None = None
    model: str | None = None
    intent: str | None = None
    tag: str | None = None
    text: str | None = None
    entry_id: str | None = None
    everything: bool = False

    def matches(self, entry: Entry) -> bool:
        """Say whether this entry is meant."""
        return (
            self.names(entry)
            and self.intent in (None, entry.intent)
            and (self.text is None or self._mentions(entry, self.text.casefold()))
        )

    def names(self, answer: Named) -> bool:
        """Say whether this answer may be meant, as far as its names tell."""
        return not self.is_empty and (
            self.tenant in (None, answer.tenant)
            and self.namespace in (None, answer.namespace)
            and self.model in (None, answer.model)
            and self.entry_id in (None, answer.entry_id)
            and (self.tag is None or self.tag in answer.tags)
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all was asked for."""
        return self == Selector()

    @staticmethod
    def _mentions(entry: Entry, text: str) -> bool:
        return text in (entry.text or "").casefold() or text in entry.answer_text.casefold()


@dataclass(frozen=True, slots=True)
class Page:
    """Entries, newest first, and the cursor of the next page; None at the end.

    A page may hold fewer entries than asked for, even none, and still have a cursor: the work of
    one page is bounded.
    """

    entries: tuple[Entry, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """How full a store's memory is.

    ``limit_bytes`` 0 is no limit. With ``drops_entries`` a full server makes room by itself, else
    it refuses writes; ``num_dropped`` counts what went that way since its start.
    """

    used_bytes: int
    limit_bytes: int = 0
    drops_entries: bool = False
    num_dropped: int = 0


class ResponseStore(Protocol):
    """Keeps entries until they expire, apart by tenant.

    Raises:
        StoreUnavailable: from any method, when the store is slow or down.
    """

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Return the live entry, or None when it is absent, expired or not the one asked for."""
        ...

    async def get_many(self, tenant: str, entry_ids: Sequence[str]) -> list[Entry | None]:
        """Return one result per id, in order, in one round trip."""
        ...

    async def put(self, entry: Entry, age_s: float = 0.0) -> bool:
        """Keep the entry until its ``expires_at``, replacing one of the same tenant and id.

        One that was asked for ``age_s`` ago and has been withdrawn since is not kept; say whether
        it was.
        """
        ...

    async def withdraw(self, selector: Selector) -> None:
        """Have answers of these names that are on their way now never be kept.

        All stores over the same server know of it, for `WITHDRAWN_S`.
        """
        ...

    async def is_withdrawn(self, answer: Named, age_s: float) -> bool:
        """Say whether an answer was withdrawn within the last ``age_s``."""
        ...

    async def delete(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Forget these entries; return the ids that existed."""
        ...

    async def select(self, selector: Selector, *, cursor: str | None, limit: int) -> Page:
        """Return a page of matching live entries, newest first.

        Raises:
            ValueError: the cursor is not one of ours.
        """
        ...

    async def count(self) -> int:
        """Return the number of live entries."""
        ...

    async def least_used(self, num: int) -> list[tuple[str, str]]:
        """Return the tenant and id of so many entries that were used longest ago, about."""
        ...

    async def sweep(self, now: float) -> int:
        """Drop index members whose entry has expired by ``now`` or is gone; return how many."""
        ...

    async def room(self) -> Room | None:
        """Tell how full the store's memory is; None where nobody counts."""
        ...

    async def ping(self) -> None:
        """Return when the store answers."""
        ...

    async def close(self) -> None:
        """Release connections; the store is not used afterwards."""
        ...
