"""Stored entries for tests that look at their text alone."""

from semantic_layer import Entry


def entry_of(text: str, entry_id: str = "x") -> Entry:
    """Return an entry stored for a text."""
    return Entry(entry_id, "t", "", "m", "f", b"", 0, 1, text=text)
