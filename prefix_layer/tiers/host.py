"""Blocks in host memory: fixed slots, used longest ago goes first. Knows no disk and no device.

A pinned entry stays. One that is dropped while pinned can't be found any more, and its slot is
free again when the last pin goes.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from prefix_layer.tiers.block_key import BlockKey

_ALIGNMENT = 64

EntryState = Literal["filling", "ready", "dropped"]


@dataclass(slots=True, eq=False)
class HostEntry:
    """A block's place.

    ``from_disk`` until what it was read for has been served; ``is_passing`` when it is here only
    on its way to the disk. ``used_s`` is when its last user let go.
    """

    key: BlockKey
    slot: int
    state: EntryState = "filling"
    pins: int = 0
    from_disk: bool = False
    is_passing: bool = False
    used_s: float = 0.0


class HostTier:
    """``num_slots`` blocks of ``block_bytes`` bytes; pinned memory when a GPU reads it.

    Memory is reserved, not touched: the system gives it as slots are filled. What nobody used for
    ``ttl_s`` goes with the next `expire`.
    """

    def __init__(
        self,
        num_slots: int,
        block_bytes: int,
        *,
        pin_memory: bool = False,
        ttl_s: float = math.inf,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        slot_bytes = -(-block_bytes // _ALIGNMENT) * _ALIGNMENT
        self._memory = torch.empty(num_slots, slot_bytes, dtype=torch.uint8, pin_memory=pin_memory)
        self._free = list(reversed(range(num_slots)))
        self._entries: dict[bytes, HostEntry] = {}
        self._idle: OrderedDict[bytes, HostEntry] = OrderedDict()
        self._ttl_s = ttl_s
        self._now_s = now_s
        self.num_slots = num_slots
        self.block_bytes = block_bytes
        self.num_evicted = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[HostEntry]:
        return iter(self._entries.values())

    def __contains__(self, own_hash: bytes) -> bool:
        return own_hash in self._entries

    def find(self, key: BlockKey) -> HostEntry | None:
        """Give the entry that holds, or will hold, exactly this block."""
        entry = self._entries.get(key.own_hash)
        return entry if entry is not None and entry.key.holds_same(key) else None

    def reserve(self, key: BlockKey) -> HostEntry | None:
        """Make a pinned entry to be filled; None when no slot can be had or the hash is taken."""
        if key.own_hash in self._entries:
            return None
        if not self._free and not self._evict():
            return None
        entry = HostEntry(key, self._free.pop(), pins=1)
        self._entries[key.own_hash] = entry
        return entry

    def pin(self, entry: HostEntry) -> None:
        """Keep an entry until unpinned as often."""
        self._idle.pop(entry.key.own_hash, None)
        entry.pins += 1

    def unpin(self, entry: HostEntry) -> None:
        """Let go of an entry; it is the one used last."""
        assert entry.pins > 0, f"{entry} is unpinned too often"
        entry.pins -= 1
        if entry.pins:
            return
        if entry.state == "dropped":
            self._free.append(entry.slot)
        else:
            entry.used_s = self._now_s()
            self._idle[entry.key.own_hash] = entry

    def touch(self, own_hash: bytes) -> None:
        """Mark as used last, if it is there and idle."""
        if own_hash in self._idle:
            self._idle[own_hash].used_s = self._now_s()
            self._idle.move_to_end(own_hash)

    def expire(self) -> None:
        """Drop what nobody has used for its time to live."""
        while self._idle:
            oldest = next(iter(self._idle.values()))
            if self._now_s() - oldest.used_s <= self._ttl_s:
                return
            self.drop(oldest)

    def drop(self, entry: HostEntry) -> None:
        """Forget an entry."""
        if entry.state == "dropped":
            return
        entry.state = "dropped"
        del self._entries[entry.key.own_hash]
        if self._idle.pop(entry.key.own_hash, None) is not None:
            self._free.append(entry.slot)

    def clear(self) -> None:
        """Forget all entries."""
        for entry in list(self._entries.values()):
            self.drop(entry)

    def memory_of(self, entry: HostEntry) -> Tensor:
        """Return the entry's bytes (block_bytes,)."""
        return self._memory[entry.slot, : self.block_bytes]

    def check_invariants(self) -> None:
        """Assert that every slot has one owner and the idle ones are those without a pin."""
        slots = [entry.slot for entry in self._entries.values()]
        assert len(set(slots) | set(self._free)) == len(slots) + len(self._free), "a slot is shared"
        for own_hash, entry in self._entries.items():
            assert entry.key.own_hash == own_hash, f"{entry} is filed under another hash"
            assert entry.state != "dropped", f"{entry} can still be found"
            assert (own_hash in self._idle) == (entry.pins == 0), f"{entry} is mislaid"
            assert entry.pins or entry.state == "ready", f"nobody fills {entry}"
        assert len(self._idle) <= len(self._entries), "an idle entry can't be found"

    def _evict(self) -> bool:
        if not self._idle:
            return False
        self.drop(next(iter(self._idle.values())))
        self.num_evicted += 1
        return True
