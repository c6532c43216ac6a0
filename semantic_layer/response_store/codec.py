"""The bytes of a stored entry: one format byte, then msgpack, compressed where that helps."""

import msgspec
import zstandard

from semantic_layer.entry import Entry
from semantic_layer.errors import EntryCorrupt

_PLAIN = b"\x01"
_ZSTD = b"\x02"
_LEVEL = 3
_SMALLEST_BYTES = 256  # below this, compression gains less than its header costs
_WORTHWHILE = 0.9  # of the plain size


def encode_entry(entry: Entry) -> bytes:
    """Return the entry's stored form."""
    plain = msgspec.msgpack.encode(entry)
    if len(plain) < _SMALLEST_BYTES:
        return _PLAIN + plain
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(plain)
    if len(packed) > _WORTHWHILE * len(plain):
        return _PLAIN + plain
    return _ZSTD + packed


def decode_entry(value: bytes) -> Entry:
    """Return the entry of a stored form.

    Raises:
        EntryCorrupt: the bytes are not one of ours.
    """
    kind, body = value[:1], value[1:]
    try:
        if kind == _ZSTD:
            body = zstandard.ZstdDecompressor().decompress(body)
        elif kind != _PLAIN:
            raise EntryCorrupt(f"unknown format byte {kind!r}")
        return msgspec.msgpack.decode(body, type=Entry)
    except (msgspec.MsgspecError, zstandard.ZstdError) as error:
        raise EntryCorrupt(str(error)) from error
