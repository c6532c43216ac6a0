"""The disk tier keeps its limit, shares its folder and survives whatever the disk does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prefix_layer.tiers.block_key import BlockKey, BlockLayout
from prefix_layer.tiers.disk import DiskTier

LAYOUT = BlockLayout(1, "model", "float32", "none", 4, [(2, 8, 8)])
OTHER = BlockLayout(1, "other", "float32", "none", 4, [(2, 8, 8)])
ROOT = Path(__file__).parents[3]
SIZE = 1000
MUCH = 1 << 20


def key(number: int, depth: int = 0) -> BlockKey:
    return BlockKey(bytes([number]) * 32, b"", (number,) * 4, depth)


def payload(number: int) -> bytes:
    return bytes([number]) * SIZE


def opened(folder: Path, max_bytes: int = MUCH, layout: BlockLayout = LAYOUT) -> DiskTier:
    disk = DiskTier(folder, layout, max_bytes)
    disk.look_around()
    return disk


def put(disk: DiskTier, *numbers: int) -> None:
    for number in numbers:
        disk.write(key(number), memoryview(payload(number)))


def has(disk: DiskTier, number: int) -> bool:
    target = bytearray(SIZE)
    outcome = disk.read(key(number), memoryview(target))
    assert outcome != "whole" or bytes(target) == payload(number)
    return outcome == "whole"


def held(disk: DiskTier, *numbers: int) -> list[int]:
    return [number for number in numbers if disk.holds(key(number).own_hash)]


def age(folder: Path, number: int, seconds: int) -> None:
    (path,) = folder.rglob(f"{key(number).own_hash.hex()}.kv")
    when = path.stat().st_mtime - seconds
    os.utime(path, (when, when))


def test_blocks_are_found_when_the_engine_restarts(tmp_path: Path) -> None:
    """They are there without closing, and counted."""
    first = opened(tmp_path)
    put(first, 1, 2)
    again = opened(tmp_path)
    assert has(again, 1)
    assert has(again, 2)
    assert again.num_bytes == first.num_bytes > 2 * SIZE


def test_blocks_are_found_at_once_when_another_engine_writes(tmp_path: Path) -> None:
    """Two engines over one folder see each other's blocks as they appear."""
    one, two = opened(tmp_path), opened(tmp_path)
    put(one, 1)
    assert has(two, 1)
    put(two, 2)
    assert has(one, 2)


def test_nothing_is_found_when_the_layout_differs(tmp_path: Path) -> None:
    """Another model's block of the same name is not there at all."""
    put(opened(tmp_path), 1)
    assert not opened(tmp_path, layout=OTHER).holds(key(1).own_hash)


def test_broken_file_is_dropped_and_counted_when_read(tmp_path: Path) -> None:
    """It misses, is gone, and the others stay."""
    disk = opened(tmp_path)
    put(disk, 1, 2)
    (path,) = tmp_path.rglob(f"{key(1).own_hash.hex()}.kv")
    path.write_bytes(path.read_bytes()[:-1])
    assert not has(disk, 1)
    assert (disk.num_broken, held(disk, 1, 2)) == (1, [2])


def test_oldest_goes_when_the_limit_is_reached(tmp_path: Path) -> None:
    """Recency is that of use; the limit holds over restarts and lower limits."""
    disk = opened(tmp_path, max_bytes=5 * (SIZE + 200))
    put(disk, 1, 2, 3, 4)
    for number, seconds in [(1, 40), (2, 30), (3, 20), (4, 10)]:
        age(tmp_path, number, seconds)
    disk.touch([key(1)])
    put(disk, 5, 6)
    assert disk.num_bytes <= 5 * (SIZE + 200)
    assert disk.num_evicted >= 1
    assert held(disk, 1, 2, 5, 6) == [1, 5, 6]
    smaller = opened(tmp_path, max_bytes=2 * (SIZE + 200))
    assert smaller.num_bytes <= 2 * (SIZE + 200)


def test_unused_blocks_are_gone_when_their_time_is_over(tmp_path: Path) -> None:
    """A time to live is since the last use, and of one's own blocks only."""
    put(opened(tmp_path, layout=OTHER), 3)
    disk = DiskTier(tmp_path, LAYOUT, MUCH, ttl_s=60)
    put(disk, 1, 2)
    for number in (1, 2, 3):
        age(tmp_path, number, 90)
    disk.touch([key(2)])
    assert held(disk, 1, 2) == [2]
    disk.look_around()
    assert len(list(tmp_path.glob("*/*/*.kv"))) == 2


def test_end_of_a_prefix_goes_first_when_used_at_once(tmp_path: Path) -> None:
    """Blocks that continue others are the older ones, so that no start is lost before its end."""
    disk = opened(tmp_path, max_bytes=4 * (SIZE + 200))
    put(disk, 1, 2, 3)
    disk.touch([key(1, depth=0), key(2, depth=1), key(3, depth=2)])
    put(disk, 4)
    put(disk, 5)
    assert held(disk, 1, 3) == [1]


def test_limit_holds_when_models_share_the_folder(tmp_path: Path) -> None:
    """Another model's old blocks make room too."""
    put(opened(tmp_path, layout=OTHER), 1, 2, 3)
    disk = opened(tmp_path, max_bytes=3 * (SIZE + 200))
    put(disk, 4, 5)
    total = sum(path.stat().st_size for path in tmp_path.rglob("*.kv"))
    assert total == disk.num_bytes <= 3 * (SIZE + 200)
    assert held(disk, 4, 5) == [4, 5]


def test_only_own_layout_goes_when_cleared(tmp_path: Path) -> None:
    """A reset is of one model; it works again afterwards."""
    other, disk = opened(tmp_path, layout=OTHER), opened(tmp_path)
    put(other, 1)
    put(disk, 1)
    disk.clear()
    assert held(disk, 1) == []
    assert held(other, 1) == [1]
    put(disk, 2)
    assert has(disk, 2)


def test_foreign_names_stay_when_swept_and_trimmed(tmp_path: Path) -> None:
    """What we did not write is not ours to remove."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("mine")
    disk = opened(tmp_path, max_bytes=2 * (SIZE + 200))
    put(disk, 1, 2, 3, 4)
    disk.clear()
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "photos" / "cat.png").read_text() == "mine"


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.prefix_layer.tiers.test_disk import opened, put
disk = opened(Path(sys.argv[1]))
put(disk, 1)
disk._folder.scratch.write_bytes(b"half")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_leftovers_go_when_their_writer_was_killed(tmp_path: Path) -> None:
    """A dead writer's half file is swept at the next start; a living one's stays."""
    living = opened(tmp_path)
    living._folder.scratch.write_bytes(b"busy")
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, cwd=ROOT)
    assert len(list(tmp_path.glob("writers/*/block"))) == 2
    disk = opened(tmp_path)
    assert disk.num_swept == 1
    assert list(tmp_path.glob("writers/*/block")) == [living._folder.scratch]
    assert has(disk, 1)


def test_reading_goes_on_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One line in the log, failures counted, no exception, no half file under a block's name."""
    disk = opened(tmp_path)
    put(disk, 1)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    put(disk, 2, 3)
    assert disk.num_failures == 1
    assert len([r for r in caplog.records if "No space left" in r.message]) == 1
    assert has(disk, 1)
    assert held(disk, 2, 3) == []
    monkeypatch.undo()
    disk._writes_from_s = 0.0
    put(disk, 2)
    assert has(disk, 2)


def test_writing_goes_on_when_the_folder_is_removed(tmp_path: Path) -> None:
    """Someone who clears the folder by hand loses the blocks, not the tier."""
    disk = opened(tmp_path / "kv")
    put(disk, 1)
    (tmp_path / "kv").rename(tmp_path / "away")
    assert not has(disk, 1)
    put(disk, 2)
    assert has(disk, 2)


def test_folder_is_for_its_owner_only_when_made(tmp_path: Path) -> None:
    """KV and token ids are the users' text."""
    opened(tmp_path / "kv")
    assert (tmp_path / "kv").stat().st_mode & 0o077 == 0
