"""Where KV goes when the device has no room, and comes back from: host memory, then disk.

Used by the engine's thread alone; the disk is the worker's. Only full blocks are kept: the rest of
a prompt behind its last full block is less than one block to compute.

```
device ── save ──▶ host ── write behind ──▶ disk
   ▲                ▲ │                      │
   └───── load ─────┼─┘                      │
                    └──────── read ──────────┘
```
With no host tier a few slots of host memory pass blocks to and from the disk. A block that was used
again on the device is written to disk before it leaves it.
Source: the conversation trace, cut in half: 23% of its blocks are used again; having them on disk
brings 46% of the hits after a restart that all of them would.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from torch import Tensor

from prefix_layer.block import Block
from prefix_layer.block_events import Departure
from prefix_layer.tiers.block_key import BlockKey, key_of
from prefix_layer.tiers.codec import Codec
from prefix_layer.tiers.disk import DiskTier
from prefix_layer.tiers.fetch import Fetch
from prefix_layer.tiers.host import HostEntry, HostTier
from prefix_layer.tiers.rates import Rates
from prefix_layer.tiers.save_gate import SaveGate
from prefix_layer.tiers.tally import Tally, Tier
from prefix_layer.tiers.worker import Done, Job, Worker

Views = Callable[[int], list[Tensor]]

_READ_AHEAD = 16
_STEP_BUDGET_S = 0.010
_MIN_PATIENCE_S = 0.05
_UNMEASURED_PATIENCE_S = 5.0
_RESET_PATIENCE_S = 10.0
_LOOK_EVERY_S = 5.0
_LOOK_PATIENCE_S = 0.05
_WRITING_SHARE = 0.5


class KvTiers:
    """The tiers of one engine. ``views`` gives a device block's KV by block id.

    ``worker`` serves ``disk``. ``keeps_host`` says that the host's slots are a tier; else they only
    serve the disk.
    """

    def __init__(
        self,
        views: Views,
        block_size: int,
        codec: Codec,
        host: HostTier,
        disk: DiskTier | None,
        worker: Worker | None,
        rates: Rates,
        *,
        keeps_host: bool,
        now_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._views = views
        self._block_size = block_size
        self._codec = codec
        self._host = host
        self._disk = disk
        self._worker = worker
        self._rates = rates
        self._keeps_host = keeps_host
        self._now_s = now_s
        self._tickets = itertools.count()
        self._writing: dict[int, HostEntry] = {}
        self._reading: dict[int, HostEntry] = {}
        self._reused: dict[Block, bytes] = {}
        self._budget_s = _STEP_BUDGET_S
        self._gate = SaveGate()
        self._look_from_s = 0.0
        self.tally = Tally(host if keeps_host else None, disk, block_size)

    # ---- device → tiers

    def stored(self, block: Block) -> None:
        """Wait until the block leaves or is used again."""

    def removed(self, block: Block, why: Departure) -> None:
        """Keep the KV of a full block that is about to make room, while any ever came back."""
        if why != "evicted" or len(block.token_ids) != self._block_size:
            return
        if self._gate.lets_pass(block.block_hash or b""):
            self._save(key_of(block), block.block_id, is_passing=False)

    def note_reuse(self, blocks: Sequence[Block]) -> None:
        """Remember blocks worth having on disk before they leave the device."""
        if self._disk is not None:
            fresh = (block for block in blocks if not block.stored)
            self._reused.update((block, block.block_hash or b"") for block in fresh)

    def write_through(self, max_blocks: int) -> None:
        """Copy some of the reused blocks to the tiers while they stay on the device."""
        for _ in range(min(max_blocks, len(self._reused))):
            block, own_hash = self._reused.popitem()
            if block.block_hash == own_hash:
                block.stored = True
                self._save(key_of(block), block.block_id, is_passing=True)

    # ---- tiers → device

    def begin_step(self) -> None:
        """Take note of what the worker has done, and give the coming step its time for loads."""
        self._budget_s = _STEP_BUDGET_S
        self._collect()
        self._host.expire()

    def pays(self, key: BlockKey) -> bool:
        """Say whether a block is in a tier and sooner here than computed."""
        self._gate.looked_for(key.own_hash)
        if self._host.find(key) is not None:
            return self._rates.pays("copy")
        if self._disk is None or not self._disk.holds(key.own_hash):
            return False
        if self._rates.pays("copy", "read"):
            return True
        if self._rates.should_try() and (entry := self._read(key)) is not None:
            entry.is_passing = True
        return False

    def start(self, keys: list[BlockKey], *, is_queued: bool) -> Fetch:
        """Begin to bring consecutive blocks; at least one."""
        limit = self._host.num_slots // 16 if is_queued else self._host.num_slots
        fetch = Fetch(keys, max(min(_READ_AHEAD, limit), 1))
        self._read_ahead(fetch)
        return fetch

    def hurry(self, fetch: Fetch) -> None:
        """Take note that the fetch's sequence has been admitted and waits for nothing else."""
        fetch.read_ahead = min(_READ_AHEAD, self._host.num_slots)
        remaining_s = self._rates.compute_s(len(fetch.keys) - fetch.num_taken)
        patience_s = _UNMEASURED_PATIENCE_S if remaining_s is None else remaining_s
        fetch.until_s = self._now_s() + max(patience_s, _MIN_PATIENCE_S)
        self._read_ahead(fetch)

    def take(self, fetch: Fetch, block_id: int) -> Tier | Literal["coming"] | None:
        """Load the fetch's next block to the device; None when there is no more to come.

        Returns the tier it came from, or ``coming`` when it is on its way or this step has spent
        its time on loads.
        """
        entry = fetch.entries.get(fetch.num_taken)
        if fetch.num_taken == len(fetch.keys) or (entry and entry.state == "dropped"):
            return None
        if entry is None or entry.state == "filling":
            self._read_ahead(fetch)
            still = fetch.num_taken in fetch.entries or bool(self._writing)
            in_time = fetch.until_s is None or self._now_s() < fetch.until_s
            return "coming" if still and in_time else None
        if self._budget_s <= 0:
            return "coming"
        return self._load(fetch, entry, block_id)

    def end(self, fetch: Fetch) -> None:
        """Let go of a fetch's blocks; those that end a prefix are the older ones."""
        for entry in fetch.entries.values():
            self._release(entry)
        fetch.entries.clear()
        taken = fetch.keys[: fetch.num_taken]
        for key in reversed(taken):
            self._host.touch(key.own_hash)
        if taken and self._disk is not None and self._worker is not None:
            disk = self._disk
            self._worker.do_soon(lambda: disk.touch(taken))

    def wait(self, timeout_s: float) -> None:
        """Wait until the worker has done something, if there is anything to be done."""
        if self._worker is not None and (self._reading or self._writing) and self._budget_s > 0:
            self._worker.wait(timeout_s)

    # ---- the rest

    def locate(self, hashes: Sequence[bytes]) -> list[Tier | None]:
        """Say for each block which tier would give it, up to the first that none would."""
        found = list(itertools.takewhile(bool, map(self._tier_of, hashes)))
        return [*found, *[None] * (len(hashes) - len(found))]

    def look_around(self) -> None:
        """Count anew what is kept, where others write, or what is kept grows old."""
        self._host.expire()
        now = self._now_s()
        if self._worker is None or self._disk is None or now < self._look_from_s:
            return
        self._look_from_s = now + _LOOK_EVERY_S
        self._worker.do_now(self._disk.look_around, _LOOK_PATIENCE_S)

    def saw_step(self, num_tokens: int, seconds: float) -> None:
        """Learn from a step what computing costs."""
        self._rates.saw_step(num_tokens, seconds)

    def reset(self) -> None:
        """Forget every block of this model, on disk for all engines that share the folder."""
        self._reused.clear()
        if self._worker is not None and self._disk is not None:
            for job in self._worker.cancel_writes():
                self._release(self._writing.pop(job.ticket))
            self._worker.do_now(self._disk.clear, _RESET_PATIENCE_S)
            self._worker.do_soon(self._disk.empty_trash)
            self._collect()
        self._host.clear()

    def check_invariants(self, fetches: Sequence[Fetch] = ()) -> None:
        """Assert that entries are pinned as often as fetches and jobs use them."""
        self._host.check_invariants()
        used = [entry for fetch in fetches for entry in fetch.entries.values()]
        used += [*self._writing.values(), *self._reading.values()]
        users = Counter(map(id, used))
        for entry in [*used, *self._host]:
            assert entry.pins == users[id(entry)], f"{entry} has {users[id(entry)]} users"

    def close(self) -> None:
        """Stop the worker."""
        if self._worker is not None:
            self._worker.close()

    def _save(self, key: BlockKey, block_id: int, *, is_passing: bool) -> None:
        held = self._host.find(key)
        if held is not None:
            held.is_passing = held.is_passing and is_passing
            self._host.touch(key.own_hash)
            return
        passes = is_passing or not self._keeps_host
        if passes and not self._wants(key):
            return
        self._collect()
        entry = self._host.reserve(key)
        if entry is None:
            self.tally.num_lost += 1
            return
        self._codec.encode(self._views(block_id), self._host.memory_of(entry))
        entry.state = "ready"
        entry.is_passing = is_passing
        self._write_behind(entry)
        self._release(entry)

    def _wants(self, key: BlockKey) -> bool:
        """Say whether the disk takes blocks now and has not this one."""
        disk = self._disk
        return disk is not None and disk.takes_writes and not disk.holds(key.own_hash)

    def _write_behind(self, entry: HostEntry) -> None:
        if self._worker is None:
            return
        if len(self._writing) >= _WRITING_SHARE * self._host.num_slots:
            self.tally.num_lost += 1
            return
        self._host.pin(entry)
        job = Job(next(self._tickets), "write", entry.key, self._bytes_of(entry))
        self._writing[job.ticket] = entry
        self._worker.submit(job)

    def _release(self, entry: HostEntry) -> None:
        """Unpin; a slot that only serves the disk is emptied at once."""
        self._host.unpin(entry)
        if (entry.is_passing or not self._keeps_host) and not entry.pins:
            self._host.drop(entry)

    def _read_ahead(self, fetch: Fetch) -> None:
        """Pin or ask for the next blocks of a fetch, as far as there is memory for them."""
        first = fetch.num_taken
        for place in range(first, min(first + fetch.read_ahead, len(fetch.keys))):
            if place in fetch.entries:
                continue
            key = fetch.keys[place]
            entry = self._host.find(key)
            if entry is None and (entry := self._read(key)) is None:
                return
            self._host.pin(entry)
            fetch.entries[place] = entry

    def _read(self, key: BlockKey) -> HostEntry | None:
        if self._worker is None:
            return None
        entry = self._host.reserve(key)
        if entry is not None:
            entry.from_disk = True
            job = Job(next(self._tickets), "read", key, self._bytes_of(entry))
            self._reading[job.ticket] = entry
            self._worker.submit(job)
        return entry

    def _load(self, fetch: Fetch, entry: HostEntry, block_id: int) -> Tier:
        begin = self._now_s()
        self._codec.decode(self._host.memory_of(entry), self._views(block_id))
        seconds = self._now_s() - begin
        self._rates.saw_load("copy", seconds)
        self._budget_s -= seconds
        tier: Tier = "disk" if entry.from_disk or not self._keeps_host else "host"
        entry.from_disk = entry.is_passing = False
        self.tally.num_loaded[tier] += 1
        self._gate.used()
        self._release(fetch.entries.pop(fetch.num_taken))
        fetch.num_taken += 1
        self._read_ahead(fetch)
        return tier

    def _collect(self) -> None:
        for done in () if self._worker is None else self._worker.collect():
            self._settle(done)

    def _settle(self, done: Done) -> None:
        if done.job.kind == "write":
            self._release(self._writing.pop(done.job.ticket))
            return
        entry = self._reading.pop(done.job.ticket)
        if done.succeeded:
            entry.state = "ready" if entry.state == "filling" else entry.state
            self._rates.saw_load("read", done.seconds)
        else:
            self._host.drop(entry)
        self._release(entry)

    def _tier_of(self, own_hash: bytes) -> Tier | None:
        if self._keeps_host and own_hash in self._host:
            return "host"
        return "disk" if self._disk is not None and self._disk.holds(own_hash) else None

    def _bytes_of(self, entry: HostEntry) -> memoryview:
        return memoryview(self._host.memory_of(entry).numpy().data)
