"""Writes labels and rejected pairs, so that all gateways know them within a second."""

from collections.abc import Callable

from semantic_layer import (
    LABELS,
    MAX_PER_INTENT,
    MAX_REJECTIONS,
    REJECTED,
    REJECTIONS,
    TAKEN_BACK,
    Journal,
    Label,
    LabelBook,
    Rejections,
    Row,
    encode_label,
)

OnLabel = Callable[[Label], None]


class LabelDesk:
    """Adds to what is known of hits and near-misses.

    Args:
        journal: where it is kept.
        rejections: the pairs that are never served again, as this process knows them.
        on_label: told each label that is added here.

    Raises:
        StoreUnavailable: from any coroutine, when the store is slow, down or full.
    """

    def __init__(self, journal: Journal, rejections: Rejections, on_label: OnLabel) -> None:
        self._journal = journal
        self._on_label = on_label
        self.book = LabelBook()
        self.rejections = rejections

    async def add(self, label: Label) -> None:
        """Keep a label in place of an earlier one of the same id."""
        data = encode_label(label)
        name = f"{LABELS}{label.intent}"
        seq = await self._journal.put(name, {label.label_id: data}, most=MAX_PER_INTENT)
        self.book.take([Row(label.label_id, seq, data)])
        self._on_label(label)

    async def reject(self, pair: str) -> None:
        """Never serve this pair again (see `rejection_id`)."""
        await self._mark(pair, REJECTED)

    async def take_back(self, pair: str) -> bool:
        """Allow a rejected pair again; say whether it was rejected."""
        if not self.rejections.has(pair):
            return False
        await self._mark(pair, TAKEN_BACK)
        return True

    async def _mark(self, pair: str, data: bytes) -> None:
        seq = await self._journal.put(REJECTIONS, {pair: data}, most=MAX_REJECTIONS)
        self.rejections.take([Row(pair, seq, data)])
