"""The bytes of a stored entry: one format byte, then msgpack, compressed where that helps.

With a sealer these bytes are sealed as a whole, behind a format byte of its own.
"""

import msgspec
import zstandard

from semantic_layer.entry import Entry
from semantic_layer.errors import EntryCorrupt
from semantic_layer.stores.sealing import Sealer, Unsealable, entry_place

_PLAIN = b"\x01"
_ZSTD = b"\x02"
_SEALED = b"\x03"
_LEVEL = 3
_SMALLEST_BYTES = 256  # below this, compression gains less than its header costs
_WORTHWHILE = 0.9  # of the plain size

_decoder = msgspec.msgpack.Decoder(Entry)


class EntryCodec:
    """Turns entries into their stored form and back, sealed where there is a sealer.

    For one thread: the decompressor is kept, as making one takes ten times what it then takes.
    """

    def __init__(self, sealer: Sealer | None = None) -> None:
        self._sealer = sealer
        self._zstd = zstandard.ZstdDecompressor()

    def encode(self, entry: Entry) -> bytes:
        """Return the entry's stored form."""
        value = _packed(msgspec.msgpack.encode(entry))
        if self._sealer is None:
            return value
        place = entry_place(entry.tenant, entry.entry_id)
        return _SEALED + self._sealer.seal(value, place)

    def decode(self, value: bytes, place: str = "") -> Entry:
        """Return the entry of a stored form; ``place`` is the `entry_place` it was read from.

        Raises:
            EntryCorrupt: the bytes are not one of ours, or sealed by a key that is not set.
        """
        if value[:1] == _SEALED:
            value = _opened(value[1:], self._sealer, place)
        kind, body = value[:1], value[1:]
        try:
            if kind == _ZSTD:
                body = self._zstd.decompress(body)
            elif kind != _PLAIN:
                raise EntryCorrupt(f"unknown format byte {kind!r}")
            return _decoder.decode(body)
        except (msgspec.MsgspecError, zstandard.ZstdError) as error:
            raise EntryCorrupt(str(error)) from error


def _packed(plain: bytes) -> bytes:
    if len(plain) < _SMALLEST_BYTES:
        return _PLAIN + plain
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(plain)
    if len(packed) > _WORTHWHILE * len(plain):
        return _PLAIN + plain
    return _ZSTD + packed


def _opened(sealed: bytes, sealer: Sealer | None, place: str) -> bytes:
    if sealer is None:
        raise EntryCorrupt("sealed, and no key is set")
    try:
        return sealer.open(sealed, place)
    except Unsealable as error:
        raise EntryCorrupt(str(error)) from error
