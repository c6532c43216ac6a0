"""Which stored answers were found wrong for which texts. Knows no store.

An entry stays right for its own question; it is only never served for that text again, however
often it is written anew.
"""

from collections.abc import Sequence
from hashlib import blake2b

from semantic_layer.stores.journal import Row
from semantic_layer.text.script import normalise

REJECTIONS = "rejections"
MAX_REJECTIONS = 50_000
REJECTED = b"1"
TAKEN_BACK = b""
_OUTER = " .!?,;:。！？，；："


def rejection_id(tenant: str, entry_id: str, text: str) -> str:
    """Return the id of a pair's row; texts that are the same in other typing share it."""
    parts = (tenant, entry_id, normalise(text).casefold().strip(_OUTER))
    joined = b"".join(b"%d:%b" % (len(p), p) for p in (_bytes(part) for part in parts))
    return blake2b(joined, digest_size=16).hexdigest()


class Rejections:
    """The rejected pairs as this process knows them; a `Reader` of their journal."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def holds(self, tenant: str, entry_id: str, text: str) -> bool:
        """Say whether this answer was found wrong for this text."""
        return bool(self._known) and self.has(rejection_id(tenant, entry_id, text))

    def has(self, row_id: str) -> bool:
        """Say whether a pair, by its row's id, was found wrong."""
        return row_id in self._known

    def take(self, rows: Sequence[Row]) -> None:
        """Learn of pairs, oldest first."""
        for row in rows:
            self._known.pop(row.row_id, None)
            if row.data:
                self._known[row.row_id] = None
        for row_id in list(self._known)[: max(0, len(self._known) - MAX_REJECTIONS)]:
            del self._known[row_id]

    def forget(self) -> None:
        """Reject nothing."""
        self._known.clear()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")
