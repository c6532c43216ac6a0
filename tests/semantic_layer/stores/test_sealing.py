"""Sealed values: who can open them, and where."""

import base64
import os

import pytest

from semantic_layer.errors import EntryCorrupt
from semantic_layer.stores.journal import MemoryJournal
from semantic_layer.stores.records import MemoryRecords
from semantic_layer.stores.response_store.codec import EntryCodec
from semantic_layer.stores.sealing import (
    SealedJournal,
    SealedRecords,
    Sealer,
    Unsealable,
    entry_place,
    read_keys,
)
from tests.fakes.stores import Clock, make_entry

OLD, NEW = bytes(range(32)), bytes(range(1, 33))


def test_value_opens_when_one_of_the_keys_sealed_it() -> None:
    """Keys are changed by putting a new one in front."""
    sealed = Sealer([OLD]).seal(b"plain", "here")
    rotated = Sealer([NEW, OLD])
    assert rotated.open(sealed, "here") == b"plain"
    assert b"plain" not in sealed
    with pytest.raises(Unsealable):
        Sealer([OLD]).open(rotated.seal(b"plain", "here"), "here")


def test_value_stays_shut_when_it_was_moved_or_changed() -> None:
    """A sealed value is bound to its place; any other byte is noticed."""
    sealer = Sealer([OLD])
    sealed = sealer.seal(b"plain", "here")
    assert sealer.seal(b"plain", "here") != sealed
    flipped = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for value, place in ((sealed, "there"), (flipped, "here"), (sealed[:9], "here"), (b"", "here")):
        with pytest.raises(Unsealable):
            sealer.open(value, place)


def test_entry_is_absent_when_it_cannot_be_opened() -> None:
    """Without the key, with another one, or at another tenant's place there is no entry."""
    entry = make_entry("1", Clock(), text="who am I?")
    sealer, place = Sealer([OLD]), entry_place("public", "1")
    value = EntryCodec(sealer).encode(entry)
    assert b"who am I?" not in value
    assert EntryCodec(sealer).decode(value, place) == entry
    assert EntryCodec(sealer).decode(EntryCodec().encode(entry), place) == entry
    wrong = ((None, place), (Sealer([NEW]), place), (sealer, entry_place("other", "1")))
    for key, where in wrong:
        with pytest.raises(EntryCorrupt):
            EntryCodec(key).decode(value, where)


async def test_records_and_journals_are_sealed_as_entries_are() -> None:
    """Kept responses and recorded requests: unreadable without the key, and then as if absent."""
    own, journal = MemoryRecords(), MemoryJournal()
    await SealedRecords(own, Sealer([OLD])).put("t", {"a": b"said"}, 60)
    (raw,) = await own.get("t", ["a"])
    assert raw is not None
    assert b"said" not in raw
    assert await SealedRecords(own, Sealer([NEW, OLD])).get("t", ["a", "b"]) == [b"said", None]
    assert await SealedRecords(own, Sealer([NEW])).get("t", ["a"]) == [None]
    sealed = SealedJournal(journal, Sealer([OLD]))
    await sealed.put("j", {"x": b"said", "y": b""}, most=9)
    assert await sealed.swap("j", "z", b"more", expected=0) is not None
    assert [row.data for row in await sealed.after("j", 0, 9)] == [b"said", b"", b"more"]
    assert b"said" not in b"".join(row.data for row in await journal.after("j", 0, 9))
    shut = SealedJournal(journal, Sealer([NEW]))
    unopened = await shut.before("j", None, 9)
    assert {row.data for row in unopened} == {b""}
    assert {row.row_id for row in unopened if row.is_shut} == {"x", "z"}
    (row,) = await sealed.get("j", ["x"])
    assert row is not None
    assert row.data == b"said"


def test_keys_are_read_when_they_are_32_bytes() -> None:
    """Base64 of either alphabet or hex, newest first."""
    key = os.urandom(32)
    text = f"{key.hex()}, {base64.urlsafe_b64encode(key).decode()},{base64.b64encode(key).decode()}"
    assert read_keys(text) == [key, key, key]
    for wrong in ("", "short", key.hex()[:-2], f"{key.hex()},", "é" * 64):
        with pytest.raises(ValueError, match="32 bytes"):
            read_keys(wrong)
