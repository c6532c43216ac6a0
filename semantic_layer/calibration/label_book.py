"""The labels that count, as this process knows them: bounded per intent and by age."""

import time
from collections.abc import Callable, Sequence

import msgspec

from semantic_layer.calibration.labels import Label
from semantic_layer.stores.journal import Row

LABELS = "labels:"
MAX_PER_INTENT = 5000
MAX_AGE_S = 90 * 86_400.0

encode_label = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Label).decode


class LabelBook:
    """A `Reader` of the journals of labels, one journal per intent."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._by_intent: dict[str, dict[str, Label]] = {}
        self._of_request: dict[str, Label] = {}
        self.num_changes = 0

    def __len__(self) -> int:
        return sum(len(labels) for labels in self._by_intent.values())

    def labels(self, intent: str | None = None) -> list[Label]:
        """Return the labels that are not too old; of one intent, or of all."""
        oldest = self._clock() - MAX_AGE_S
        books = self._by_intent.values() if intent is None else [self._by_intent.get(intent, {})]
        return [label for book in books for label in book.values() if label.at >= oldest]

    def of_request(self, request_id: str) -> Label | None:
        """Return the latest label that a recorded request has."""
        return self._of_request.get(request_id)

    def take(self, rows: Sequence[Row]) -> None:
        """Learn of labels, oldest first."""
        for row in rows:
            label = _read(row.data)
            if label is not None:
                self._keep(label)
        self.num_changes += len(rows)

    def forget(self) -> None:
        """Know nothing."""
        self._by_intent.clear()
        self._of_request.clear()
        self.num_changes += 1

    def _keep(self, label: Label) -> None:
        book = self._by_intent.setdefault(label.intent, {})
        book.pop(label.label_id, None)
        book[label.label_id] = label
        if label.request_id:
            self._of_request[label.request_id] = label
        while len(book) > MAX_PER_INTENT:
            gone = book.pop(next(iter(book)))
            if self._of_request.get(gone.request_id) is gone:
                del self._of_request[gone.request_id]


def _read(data: bytes) -> Label | None:
    """Return a label; None for what another version wrote."""
    try:
        return _decode(data)
    except msgspec.MsgspecError:
        return None
