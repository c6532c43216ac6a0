"""Any order of events over pool, index and tiers leaves all whole and never gives wrong KV.

The KV of a slot is a number that stands for all tokens it was computed from, and it travels through
host memory and real files, so that one misplaced block is seen.
"""

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from torch import Tensor

from prefix_layer.block import Block
from prefix_layer.block_pool import BlockPool
from prefix_layer.eviction import POLICIES, make_policy
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.prefix_index import PrefixIndex
from prefix_layer.sequence import Sequence
from prefix_layer.tiers import BlockLayout, DiskTier, HostTier, KvTiers, Rates, make_codec
from tests.fakes.disk_worker import InlineWorker
from tests.prefix_layer.pools import BLOCK_SIZE, make_sequence
from tests.prefix_layer.test_pool_machine import Kv, PoolMachine

FAMILIES = [[0] * 20, [0] * 8 + [1] * 12, [1, 0] * 10]
PROMPTS = st.builds(
    lambda family, length, tail: FAMILIES[family][:length] + tail,
    st.integers(0, len(FAMILIES) - 1),
    st.sampled_from([4, 8, 12, 17, 20]),
    st.lists(st.integers(0, 1), min_size=1, max_size=3),
)
SALTS = st.sampled_from([b"", b"", b"", b"tenant"])
LAYOUT = BlockLayout(1, "numbers", "int64", "none", BLOCK_SIZE, [(1, 1, 1)])


class Slots:
    """KV as the machine writes and reads it, kept as numbers in tensors like a model's."""

    def __init__(self, num_blocks: int) -> None:
        self._keys = torch.zeros(num_blocks, BLOCK_SIZE, 1, 1, dtype=torch.int64)
        self._values = torch.zeros(num_blocks, BLOCK_SIZE, 1, 1, dtype=torch.int64)
        self._numbers: dict[Kv, int] = {}
        self._meanings: list[Kv] = []

    def views(self, block_id: int) -> list[Tensor]:
        return [self._keys[block_id], self._values[block_id]]

    def __setitem__(self, place: tuple[Block, int], kv: Kv) -> None:
        if kv not in self._numbers:
            self._numbers[kv] = len(self._meanings) + 1
            self._meanings.append(kv)
        block, i = place
        self._keys[block.block_id, i] = self._numbers[kv]
        self._values[block.block_id, i] = -self._numbers[kv]

    def __getitem__(self, place: tuple[Block, int]) -> Kv:
        block, i = place
        number = int(self._keys[block.block_id, i])
        assert number > 0, "a slot is read that was never written"
        assert int(self._values[block.block_id, i]) == -number, "keys and values are mixed up"
        return self._meanings[number - 1]


class TierMachine(PoolMachine):
    """The machine of the pool, with tiers below it and a disk on which anything happens."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="strata-tiers-"))
        self.waiting: list[Sequence] = []

    @initialize(
        num_blocks=st.integers(5, 10),
        policy=st.sampled_from(sorted(POLICIES)),
        num_slots=st.integers(2, 8),
        max_files=st.integers(2, 12),
        with_disk=st.booleans(),
        keeps_host=st.booleans(),
    )
    def start(
        self,
        num_blocks: int,
        policy: str,
        num_slots: int,
        max_files: int,
        with_disk: bool,
        keeps_host: bool,
    ) -> None:
        slots = Slots(num_blocks)
        codec = make_codec("none", slots.views(0))
        self.max_bytes = max_files * 320
        ticks = itertools.count(1)
        self.disk = None
        if with_disk:
            self.disk = DiskTier(
                self.folder, LAYOUT, self.max_bytes, now_ns=lambda: next(ticks) * 1_000_000_000
            )
        self.worker = None if self.disk is None else InlineWorker(self.disk)
        self.tiers = KvTiers(
            slots.views,
            BLOCK_SIZE,
            codec,
            HostTier(num_slots, codec.num_bytes),
            self.disk,
            self.worker,
            Rates(BLOCK_SIZE, always=True),
            keeps_host=keeps_host or not with_disk,
            now_s=lambda: next(ticks) / 1000,
        )
        index = PrefixIndex(BLOCK_SIZE, "model")
        self.pool = BlockPool(num_blocks, index, make_policy(policy, num_blocks), [self.tiers])
        self.cache = PrefixCache(self.pool, enabled=True, tiers=self.tiers)
        self.running = []
        self.departed = []
        self.slots = slots

    @rule(prompt=PROMPTS, salt=SALTS)
    def arrive(self, prompt: list[int], salt: bytes) -> None:
        self.admit(make_sequence(prompt, salt=salt))

    @rule(prompts=st.lists(PROMPTS, min_size=1, max_size=4), salt=SALTS, more=st.integers(0, 3))
    def visit(self, prompts: list[list[int]], salt: bytes, more: int) -> None:
        """Come, get all that is stored, be computed, and go: as most requests do."""
        for prompt in prompts:
            self.serve(prompt, salt, more)

    def serve(self, prompt: list[int], salt: bytes, more: int) -> None:
        sequence = make_sequence(prompt, salt=salt)
        self.admit(sequence)
        while sequence not in self.running:
            if not self.running:
                return
            self.leave(self.running[0])
            self.admit(sequence)
        while sequence.fetch is not None:
            self.tiers.begin_step()
            self.promote(sequence)
            if self.worker is not None:
                self.worker.work()
        for token in range(more + 1):
            self.advance(sequence, sequence.num_pending_tokens)
            if sequence.num_pending_tokens == 0:
                sequence.token_ids.append(token % 2)
        self.leave(sequence)

    @rule(prompt=PROMPTS, salt=SALTS)
    def queue(self, prompt: list[int], salt: bytes) -> None:
        self.waiting.append(make_sequence(prompt, salt=salt))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def prefetch(self, data: st.DataObject) -> None:
        self.cache.prefetch(data.draw(st.sampled_from(self.waiting)))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), aborted=st.booleans())
    def dequeue(self, data: st.DataObject, aborted: bool) -> None:
        sequence = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(sequence)
        if aborted:
            self.cache.release(sequence)
            return
        self.admit(sequence)
        if sequence not in self.running:
            self.waiting.append(sequence)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def preempt(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(self.running))
        self.leave(sequence)
        self.waiting.insert(0, sequence)

    @rule(num_jobs=st.integers(1, 6))
    def work(self, num_jobs: int) -> None:
        for _ in range(num_jobs if self.worker is not None else 0):
            self.worker.work()

    @precondition(lambda self: self.fetching())
    @rule()
    def load(self) -> None:
        self.tiers.begin_step()
        for sequence in self.fetching():
            self.promote(sequence)

    @rule(count=st.integers(1, 4))
    def write_through(self, count: int) -> None:
        self.tiers.write_through(count)

    @rule(what=st.sampled_from(["none", "none", "none", "device", "device", "tiers", "both"]))
    def forget(self, what: str) -> None:
        if what in ("device", "both"):
            self.pool.forget_unused()
        if what in ("tiers", "both"):
            self.tiers.reset()

    @precondition(lambda self: self.files())
    @rule(data=st.data(), how=st.sampled_from(["flip", "cut", "empty", "remove", "swap"]))
    def damage(self, data: st.DataObject, how: str) -> None:
        some = st.lists(st.sampled_from(self.files()), min_size=1)
        for file in data.draw(st.just(self.files()) | some):
            self.damage_file(file, how, data)

    def damage_file(self, file: Path, how: str, data: st.DataObject) -> None:
        if not file.exists():
            return
        content = bytearray(file.read_bytes())
        if how == "flip" and content:
            at = data.draw(st.sampled_from([-1, -64, -70, -150, 5, 20]))
            content[at % len(content)] ^= 1
            file.write_bytes(content)
        elif how == "remove":
            file.unlink()
        elif how == "swap":
            file.write_bytes(data.draw(st.sampled_from(self.files())).read_bytes())
        else:
            file.write_bytes(content[: len(content) // 2 if how == "cut" else 0])

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def compute(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(self.running))
        if sequence.fetch is not None:
            self.tiers.begin_step()
            self.promote(sequence)
        if sequence.fetch is None:
            some = st.integers(0, sequence.num_pending_tokens)
            self.advance(sequence, data.draw(st.just(sequence.num_pending_tokens) | some))

    @invariant()
    def tiers_whole(self) -> None:
        if hasattr(self, "tiers"):
            fetches = [s.fetch for s in [*self.running, *self.waiting] if s.fetch is not None]
            self.tiers.check_invariants(fetches)
            assert all(not sequence.block_table for sequence in self.waiting)

    @invariant()
    def disk_within_limit(self) -> None:
        assert not self.files() or sum(
            file.stat().st_size for file in self.files()
        ) <= self.max_bytes + 40 * len(self.files())

    def teardown(self) -> None:
        if hasattr(self, "tiers"):
            self.tiers.close()
        shutil.rmtree(self.folder)

    def leave(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.cache.release(sequence)

    def fetching(self) -> list[Sequence]:
        return [sequence for sequence in self.running if sequence.fetch is not None]

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*/*/*.kv"))

    def promote(self, sequence: Sequence) -> None:
        before = sequence.num_computed_tokens
        self.cache.load(sequence)
        loaded = sequence.num_computed_tokens - before
        assert loaded % BLOCK_SIZE == 0
        assert sequence.num_pending_tokens >= 1, "nothing is left to compute"


LIMIT = int(os.environ.get("STRATA_TEST_MACHINE_EXAMPLES", "420"))
TierMachine.TestCase.settings = settings(max_examples=LIMIT, stateful_step_count=50, deadline=None)
TestTierMachine = TierMachine.TestCase
