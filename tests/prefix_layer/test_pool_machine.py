"""Any order of arrivals, growth, commits and departures leaves pool, index and KV whole."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from prefix_layer.block import Block
from prefix_layer.eviction import POLICIES
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.sequence import Sequence
from tests.prefix_layer.pools import BLOCK_SIZE, make_pool, make_sequence

PROMPTS = st.lists(st.integers(0, 1), min_size=1, max_size=5 * BLOCK_SIZE)
SALTS = st.sampled_from([b"", b"tenant"])

Kv = tuple[bytes, tuple[int, ...]]


def kv_of(sequence: Sequence, position: int) -> Kv:
    """Stand in for the KV of one position: all that it depends on."""
    return sequence.salt, tuple(sequence.token_ids[: position + 1])


class PoolMachine(RuleBasedStateMachine):
    """Model of the memory: what each slot's KV was computed from."""

    @initialize(num_blocks=st.integers(5, 12), policy=st.sampled_from(list(POLICIES)))
    def start(self, num_blocks: int, policy: str) -> None:
        self.pool = make_pool(num_blocks, policy)
        self.cache = PrefixCache(self.pool, enabled=True)
        self.running: list[Sequence] = []
        self.departed: list[Sequence] = []
        self.slots: dict[tuple[Block, int], Kv] = {}

    @rule(prompt=PROMPTS, salt=SALTS)
    def arrive(self, prompt: list[int], salt: bytes) -> None:
        self.admit(make_sequence(prompt, salt=salt))

    @precondition(lambda self: self.departed)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(self.departed))
        self.departed.remove(sequence)
        self.admit(sequence)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def compute(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(self.running))
        self.advance(sequence, data.draw(st.integers(0, sequence.num_pending_tokens)))

    def advance(self, sequence: Sequence, num_tokens: int) -> None:
        if not self.cache.grow(sequence, num_tokens):
            return
        self.copy(sequence)
        start = sequence.num_computed_tokens
        for position in range(start, start + num_tokens):
            self.write(sequence, position, kv_of(sequence, position))
        self.cache.commit(sequence, num_tokens)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), token=st.integers(0, 1))
    def generate(self, data: st.DataObject, token: int) -> None:
        data.draw(st.sampled_from(self.running)).token_ids.append(token)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def depart(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(self.running))
        self.running.remove(sequence)
        self.cache.release(sequence)
        self.departed.append(sequence)

    @rule()
    def forget(self) -> None:
        self.pool.forget_unused()

    @invariant()
    def whole(self) -> None:
        if not hasattr(self, "pool"):
            return
        self.pool.check_invariants([sequence.held_blocks for sequence in self.running])
        counts = self.pool.count_by_state()
        assert sum(counts.values()) == len(self.pool.blocks)
        if not self.running:
            assert counts["active"] == 0

    @invariant()
    def readable(self) -> None:
        """Hold in each slot that can be read the KV it is read for."""
        for sequence in getattr(self, "running", []):
            for position in range(num_readable(sequence)):
                block = sequence.block_table[position // BLOCK_SIZE]
                assert self.slots[block, position % BLOCK_SIZE] == kv_of(sequence, position)
        for block in self.pool.index if hasattr(self, "pool") else ():
            salt, tokens = path_of(block)
            start = len(tokens) - len(block.token_ids)
            for i in range(len(block.token_ids)):
                assert self.slots[block, i] == (salt, tokens[: start + i + 1])

    def admit(self, sequence: Sequence) -> None:
        match = self.cache.match(sequence)
        assert match.num_tokens == min(self.longest(sequence), len(sequence.token_ids) - 1)
        if self.cache.admit(sequence, match):
            assert sequence.num_computed_tokens in (
                match.num_tokens,
                len(match.blocks) * BLOCK_SIZE,
            )
            self.running.append(sequence)

    def longest(self, sequence: Sequence) -> int:
        """Compare a sequence with every cached path, token by token."""
        longest = 0
        for block in self.pool.index:
            salt, tokens = path_of(block)
            if salt == sequence.salt:
                pairs = enumerate(zip(tokens, sequence.token_ids, strict=False))
                short = min(len(tokens), len(sequence.token_ids))
                longest = max(longest, next((i for i, (a, b) in pairs if a != b), short))
        return longest

    def copy(self, sequence: Sequence) -> None:
        copy = sequence.pending_copy
        if copy is not None:
            start = sequence.num_shared_blocks * BLOCK_SIZE
            for i in range(copy.num_tokens):
                assert sequence.block_table[sequence.num_shared_blocks] is copy.target
                self.write(sequence, start + i, self.slots[copy.source, i])

    def write(self, sequence: Sequence, position: int, kv: Kv) -> None:
        block = sequence.block_table[position // BLOCK_SIZE]
        assert position % BLOCK_SIZE >= len(block.token_ids), "shared KV was overwritten"
        owners = [s for s in self.running if block in s.block_table]
        assert owners == [sequence], "another sequence's block was overwritten"
        self.slots[block, position % BLOCK_SIZE] = kv


def num_readable(sequence: Sequence) -> int:
    """Count the positions whose KV is there; a pending copy's are not yet."""
    pending = sequence.pending_copy
    return sequence.num_computed_tokens - (0 if pending is None else pending.num_tokens)


def path_of(block: Block) -> Kv:
    """Read the tokens from the root to the end of a block."""
    tokens: tuple[int, ...] = ()
    salt, above = block.salt, block
    while above is not None:
        tokens, above = above.token_ids + tokens, above.parent
    return salt, tokens


PoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPoolMachine = PoolMachine.TestCase
