"""Where a page ended, as text a client can hold."""

import base64
import binascii

import msgspec


class Position(msgspec.Struct, frozen=True, array_like=True):
    """One entry's place in the order: newest first, then by member name, descending."""

    created_at: float
    member: str

    def is_after(self, other: "Position") -> bool:
        """Whether this place comes later on the pages than the other."""
        return (self.created_at, self.member) < (other.created_at, other.member)


def encode_cursor(position: Position) -> str:
    """Return the cursor of the page after this place."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()


def decode_cursor(cursor: str | None) -> Position | None:
    """Return the place a cursor stands for.

    Raises:
        ValueError: it is not one of ours.
    """
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=Position)
    except (binascii.Error, msgspec.MsgspecError, UnicodeError) as error:
        raise ValueError("malformed cursor") from error
