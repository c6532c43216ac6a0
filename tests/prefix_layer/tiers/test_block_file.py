"""A block's file is read back whole, or found out."""

import os
from pathlib import Path

import pytest

from prefix_layer.tiers.block_file import read_block, write_block
from prefix_layer.tiers.block_key import BlockKey, BlockLayout

LAYOUT = BlockLayout(1, "model", "float32", "none", 4, [(2, 8, 8)])
KEY = BlockKey(b"h" * 32, b"p" * 32, (1, 2, 3, 4))
PAYLOAD = os.urandom(1000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "block"
    write_block(path, tmp_path / "scratch", KEY, LAYOUT, memoryview(PAYLOAD))
    return path


def read(path: Path, key: BlockKey = KEY, layout: BlockLayout = LAYOUT, size: int = 1000) -> str:
    target = bytearray(size)
    outcome = read_block(path, key, layout, memoryview(target))
    assert outcome != "whole" or bytes(target) == PAYLOAD
    return outcome


def test_payload_comes_back_when_the_file_is_whole(path: Path) -> None:
    """What was written is read, and no scratch file is left."""
    assert read(path) == "whole"
    assert [entry.name for entry in path.parent.iterdir()] == ["block"]


def test_block_is_missing_when_there_is_no_file(tmp_path: Path) -> None:
    """A miss is an outcome, not an error."""
    assert read(tmp_path / "none") == "missing"


def test_any_flipped_bit_is_found_when_a_file_is_damaged(path: Path) -> None:
    """No byte of the file may change unnoticed: lead, header and payload."""
    whole = path.read_bytes()
    for at in [*range(len(whole) - len(PAYLOAD)), len(whole) - 1000, len(whole) - 500, -1]:
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        assert read(path) == "broken", f"byte {at}"


def test_any_length_is_found_when_a_file_is_cut_or_grown(path: Path) -> None:
    """A half-written file and one with something behind it are both broken."""
    whole = path.read_bytes()
    for length in (0, 1, 20, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert read(path) == "broken"
    path.write_bytes(whole + b"x")
    assert read(path) == "broken"


@pytest.mark.parametrize(
    "key",
    [
        BlockKey(KEY.own_hash, KEY.parent_hash, (1, 2, 3, 5)),
        BlockKey(KEY.own_hash, b"q" * 32, KEY.token_ids),
        BlockKey(b"i" * 32, KEY.parent_hash, KEY.token_ids),
    ],
    ids=["tokens", "parent", "hash"],
)
def test_another_block_is_found_out_when_its_hash_collides(path: Path, key: BlockKey) -> None:
    """The hash is the name only; the file says which block it is (field case E01)."""
    assert read(path, key) == "broken"


@pytest.mark.parametrize(
    "layout",
    [
        BlockLayout(2, "model", "float32", "none", 4, [(2, 8, 8)]),
        BlockLayout(1, "other", "float32", "none", 4, [(2, 8, 8)]),
        BlockLayout(1, "model", "int32xx", "none", 4, [(2, 8, 8)]),
        BlockLayout(1, "model", "float32", "int8", 4, [(2, 8, 8)]),
        BlockLayout(1, "model", "float32", "none", 4, [(2, 4, 8)]),
    ],
)
def test_foreign_layout_is_found_out_when_the_sizes_are_equal(
    path: Path, layout: BlockLayout
) -> None:
    """KV of another model, dtype, codec or format is never taken for ours."""
    assert read(path, layout=layout) == "broken"


def test_old_file_stays_when_writing_fails(path: Path) -> None:
    """A write that can't be finished leaves what was there."""
    with pytest.raises(OSError):  # noqa: PT011  the system's own words
        write_block(path, path.parent / "no" / "scratch", KEY, LAYOUT, memoryview(b"other"))
    assert read(path) == "whole"
