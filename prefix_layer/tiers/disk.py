"""The disk tier: blocks in a folder that engines share. Runs on the worker; only `holds` elsewhere.

It never raises for what a disk may do: it counts, says so once in the log, and lets requests go on.
"""

import logging
import math
import os
import time
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

import msgspec

from prefix_layer.tiers.block_file import ReadOutcome, file_bytes, read_block, write_block
from prefix_layer.tiers.block_key import BlockKey, BlockLayout
from prefix_layer.tiers.kv_folder import KvFolder, StoredFile

_KEPT_SHARE = 0.9  # of the limit, after making room: a scan of the folder pays for many writes
_SCAN_SHARE = 0.02  # of the limit, written by us, until we look again what others wrote
_RETRY_S = 30.0
_DEPTH_NS = 1000

log = logging.getLogger("strata.kv")


def layout_name(layout: BlockLayout) -> str:
    """Name the part of the folder that holds blocks of this layout only."""
    return blake2b(msgspec.msgpack.encode(layout), digest_size=16).hexdigest()


class DiskTier:
    """Block files of one layout, at most ``max_bytes`` in the whole folder.

    Blocks that nobody used for ``ttl_s`` are not found any more, and go when room is made.

    With several engines the limit may be passed for a moment, by 2% for each other engine.
    ``num_failures`` counts what the disk refused, ``num_broken`` files that were not what their
    name says.

    Raises:
        OSError: the folder can't be used at all.
    """

    def __init__(
        self,
        folder: Path,
        layout: BlockLayout,
        max_bytes: int,
        *,
        ttl_s: float = math.inf,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._layout = layout
        self._max_bytes = max_bytes
        self._ttl_ns = ttl_s * 1e9
        self._now_ns = now_ns
        self._folder = KvFolder(folder, layout_name(layout))
        self._unscanned_bytes = 0
        self._writes_from_s = 0.0
        self._is_ailing = False
        self.num_bytes = 0
        self.num_evicted = 0
        self.num_failures = 0
        self.num_broken = 0
        self.num_swept = 0

    def holds(self, own_hash: bytes) -> bool:
        """Say whether a block's file is there now, whoever wrote it; safe on any thread."""
        try:
            used_ns = self._folder.path_of(own_hash).stat().st_mtime_ns
        except OSError:
            return False
        return not self._is_expired(used_ns)

    @property
    def takes_writes(self) -> bool:
        """Say whether the disk did not refuse a write lately."""
        return time.monotonic() >= self._writes_from_s

    def look_around(self) -> None:
        """Count what is there, remove what dead writers left, and keep the limit."""
        try:
            self.num_swept += self._folder.sweep()
            self._trim(0)
        except OSError as error:
            self._suffer(error, "looked through")

    def write(self, key: BlockKey, payload: memoryview) -> bool:
        """Keep a block; say whether it is on disk now."""
        if self.holds(key.own_hash):
            self.touch([key])
            return True
        if not self.takes_writes:
            return False
        try:
            return self._write(key, payload)
        except OSError as error:
            self._suffer(error, "written to")
            self._writes_from_s = time.monotonic() + _RETRY_S
            return False

    def read(self, key: BlockKey, target: memoryview) -> ReadOutcome:
        """Fill ``target`` with a block; a file that is not that block is removed."""
        path = self._folder.path_of(key.own_hash)
        try:
            outcome = read_block(path, key, self._layout, target)
        except OSError as error:
            self._suffer(error, "read")
            return "missing"
        if outcome == "broken":
            self.num_broken += 1
            log.warning("KV file %s is broken and was dropped", path.name)
            self._remove(str(path))
        return outcome

    def touch(self, keys: Iterable[BlockKey]) -> None:
        """Mark blocks as used now, those that continue others as a little older."""
        now = self._now_ns()
        for key in keys:
            when = now - key.depth * _DEPTH_NS
            try:
                os.utime(self._folder.path_of(key.own_hash), ns=(when, when))
            except OSError:  # gone meanwhile, or not ours to touch: then its age stays
                continue

    def clear(self) -> None:
        """Let no block of this layout be found any more; `empty_trash` gives their room back."""
        try:
            self._folder.clear()
            self._trim(0)
        except OSError as error:
            self._suffer(error, "cleared")

    def empty_trash(self) -> None:
        """Remove what was cleared."""
        self._folder.empty_trash()

    def close(self) -> None:
        """Leave the folder to other engines."""
        self._folder.close()

    def _write(self, key: BlockKey, payload: memoryview) -> bool:
        size = file_bytes(key, self._layout, len(payload))
        looked_long_ago = self._unscanned_bytes > _SCAN_SHARE * self._max_bytes
        if looked_long_ago or self.num_bytes + size > self._max_bytes:
            self._trim(size)
        if self.num_bytes + size > self._max_bytes:
            return False
        self._folder.make_room(key.own_hash)
        path = self._folder.path_of(key.own_hash)
        write_block(path, self._folder.scratch, key, self._layout, payload)
        self.touch([key])
        self.num_bytes += size
        self._unscanned_bytes += size
        self._is_ailing = False
        return True

    def _trim(self, coming_bytes: int) -> None:
        """Look at all files, and if they are too many remove those used longest ago."""
        files = sorted(self._folder.scan(), key=lambda file: (file.used_ns, file.path))
        files = [file for file in files if not self._let_expire(file)]
        self.num_bytes = sum(file.num_bytes for file in files)
        self._unscanned_bytes = 0
        if self.num_bytes + coming_bytes <= self._max_bytes:
            return
        for file in files:
            if self.num_bytes + coming_bytes <= _KEPT_SHARE * self._max_bytes:
                return
            if self._remove(file.path):
                self.num_bytes -= file.num_bytes
                self.num_evicted += 1

    def _let_expire(self, file: StoredFile) -> bool:
        """Remove a block of ours that is too old; other engines have their own times to live."""
        is_ours = Path(file.path).is_relative_to(self._folder.own)
        return is_ours and self._is_expired(file.used_ns) and self._remove(file.path)

    def _is_expired(self, used_ns: int) -> bool:
        return self._now_ns() - used_ns > self._ttl_ns

    def _remove(self, path: str) -> bool:
        try:
            Path(path).unlink()
        except FileNotFoundError:
            return True
        except OSError as error:
            self._suffer(error, "cleaned")
            return False
        return True

    def _suffer(self, error: OSError, what: str) -> None:
        self.num_failures += 1
        if not self._is_ailing:
            self._is_ailing = True
            log.warning("KV folder can't be %s (%s); requests go on without it", what, error)
