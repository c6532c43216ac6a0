"""Encryption of what is stored: AES-256-GCM (NIST SP 800-38D), and the only file that names it.

A sealed value is a key's id (4 bytes), a nonce (12) and the ciphertext. It is bound to the place
it stands at, so one value cannot be put in place of another.
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from semantic_layer.errors import SemanticLayerError
from semantic_layer.stores.journal import Journal, Row
from semantic_layer.stores.records import Records

_KEY_BYTES = 32
_ID_BYTES = 4
_NONCE_BYTES = 12


class Unsealable(SemanticLayerError):
    """The value was sealed by a key that is not ours, for another place, or is damaged."""


class Sealer:
    """Seals by the first key and opens what any of the keys sealed; keys are 32 bytes."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        assert keys, "a sealer has a key"
        self._ciphers = {blake2b(key, digest_size=_ID_BYTES).digest(): AESGCM(key) for key in keys}
        self._id = next(iter(self._ciphers))

    def seal(self, plain: bytes, place: str) -> bytes:
        """Return the sealed form of a value that stands at ``place``."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._id].encrypt(nonce, plain, _bytes(place))
        return self._id + nonce + sealed

    def open(self, sealed: bytes, place: str) -> bytes:
        """Return the plain form.

        Raises:
            Unsealable: by no key of ours.
        """
        cipher = self._ciphers.get(sealed[:_ID_BYTES])
        nonce = sealed[_ID_BYTES : _ID_BYTES + _NONCE_BYTES]
        if cipher is None or len(nonce) < _NONCE_BYTES:
            raise Unsealable("sealed by a key that is not set")
        try:
            return cipher.decrypt(nonce, sealed[_ID_BYTES + _NONCE_BYTES :], _bytes(place))
        except InvalidTag:
            raise Unsealable("sealed for another place, or damaged") from None


def read_keys(text: str) -> list[bytes]:
    """Return the keys of a list, base64 or hex, separated by commas.

    Raises:
        ValueError: one is not 32 bytes.
    """
    return [_key(part.strip()) for part in text.split(",")]


class SealedRecords:
    """`Records` whose values are sealed; one that cannot be opened is not there."""

    def __init__(self, own: Records, sealer: Sealer) -> None:
        self._own = own
        self._sealer = sealer

    async def put(self, tenant: str, items: Mapping[str, bytes], ttl_s: float) -> None:
        """Keep each value under its name."""
        sealed = {
            name: self._sealer.seal(value, _place("record", tenant, name))
            for name, value in items.items()
        }
        await self._own.put(tenant, sealed, ttl_s)

    async def get(
        self, tenant: str, names: Sequence[str], renew_s: float | None = None
    ) -> list[bytes | None]:
        """Return the values in order, None where there is none."""
        found = await self._own.get(tenant, names, renew_s)
        return [
            None if value is None else self._opened(value, _place("record", tenant, name))
            for value, name in zip(found, names, strict=True)
        ]

    async def delete(self, tenant: str, name: str) -> bool:
        """Forget one; say whether it was there."""
        return await self._own.delete(tenant, name)

    async def close(self) -> None:
        """Close the store."""
        await self._own.close()

    def _opened(self, value: bytes, place: str) -> bytes | None:
        try:
            return self._sealer.open(value, place)
        except Unsealable:
            return None


class SealedJournal:
    """A `Journal` whose rows are sealed; one that cannot be opened reads as taken back."""

    def __init__(self, own: Journal, sealer: Sealer) -> None:
        self._own = own
        self._sealer = sealer

    async def put(self, name: str, rows: Mapping[str, bytes], *, most: int) -> int:
        """Write rows; see `Journal.put`."""
        sealed = {row_id: self._sealed(name, row_id, data) for row_id, data in rows.items()}
        return await self._own.put(name, sealed, most=most)

    async def swap(self, name: str, row_id: str, data: bytes, *, expected: int) -> int | None:
        """Write a row on a condition; see `Journal.swap`."""
        sealed = self._sealed(name, row_id, data)
        return await self._own.swap(name, row_id, sealed, expected=expected)

    async def get(self, name: str, row_ids: Sequence[str]) -> list[Row | None]:
        """Return one result per id, in order."""
        rows = await self._own.get(name, row_ids)
        return [None if row is None else self._opened(name, row) for row in rows]

    async def after(self, name: str, seq: int, limit: int) -> list[Row]:
        """Return the next rows written after ``seq``, oldest first."""
        return [self._opened(name, row) for row in await self._own.after(name, seq, limit)]

    async def before(self, name: str, seq: int | None, limit: int) -> list[Row]:
        """Return the rows written before ``seq`` (None: the end), newest first."""
        return [self._opened(name, row) for row in await self._own.before(name, seq, limit)]

    async def heads(self) -> dict[str, int]:
        """Return the last sequence number of every journal."""
        return await self._own.heads()

    async def close(self) -> None:
        """Close the journals."""
        await self._own.close()

    def _sealed(self, name: str, row_id: str, data: bytes) -> bytes:
        return data and self._sealer.seal(data, _place("row", name, row_id))

    def _opened(self, name: str, row: Row) -> Row:
        if not row.data:
            return row
        try:
            data = self._sealer.open(row.data, _place("row", name, row.row_id))
        except Unsealable:
            return Row(row.row_id, row.seq, b"", is_shut=True)
        return Row(row.row_id, row.seq, data)


def entry_place(tenant: str, entry_id: str) -> str:
    """Return the place that an entry is bound to."""
    return _place("entry", tenant, entry_id)


def _place(kind: str, owner: str, name: str) -> str:
    return f"{kind}:{len(owner)}:{owner}:{name}"


def _bytes(place: str) -> bytes:
    return place.encode("utf-8", "surrogatepass")


def _key(text: str) -> bytes:
    try:
        is_hex = len(text) == 2 * _KEY_BYTES
        key = bytes.fromhex(text) if is_hex else base64.b64decode(text, altchars=b"-_")
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(f"expected {_KEY_BYTES} bytes in base64 or hex")
    return key
