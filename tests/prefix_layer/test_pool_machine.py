"""Any order of arrivals, growth, commits and departures leaves pool and index whole."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from prefix_layer.eviction import POLICIES
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.sequence import Sequence
from tests.prefix_layer.pools import BLOCK_SIZE, make_pool, make_sequence

PROMPTS = st.lists(st.integers(0, 1), min_size=1, max_size=5 * BLOCK_SIZE)
SALTS = st.sampled_from([b"", b"tenant"])


class PoolMachine(RuleBasedStateMachine):
    """Model of the cache: what each block's KV was computed from, by slot contents."""

    @initialize(num_blocks=st.integers(5, 12), policy=st.sampled_from(list(POLICIES)))
    def start(self, num_blocks: int, policy: str) -> None:
        self.pool = make_pool(num_blocks, policy)
        self.cache = PrefixCache(self.pool, enabled=True)
        self.running: list[Sequence] = []
        self.contents: dict[int, tuple[bytes, list[int]]] = {}

    @rule(prompt=PROMPTS, salt=SALTS)
    def arrive(self, prompt: list[int], salt: bytes) -> None:
        sequence = make_sequence(prompt, salt=salt)
        matched = self.cache.match(sequence)
        assert len(matched) * BLOCK_SIZE < len(prompt)
        for i, block in enumerate(matched):
            whole_prefix = (salt, prompt[: (i + 1) * BLOCK_SIZE])
            assert self.contents[block.block_id] == whole_prefix, "a foreign block matched"
        if self.cache.admit(sequence, matched):
            self.running.append(sequence)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def compute(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(self.running))
        num_tokens = data.draw(st.integers(0, sequence.num_pending_tokens))
        if not self.cache.grow(sequence, num_tokens):
            return
        end = sequence.num_computed_tokens + num_tokens
        for i in range(end // BLOCK_SIZE):
            prefix = (sequence.salt, sequence.token_ids[: (i + 1) * BLOCK_SIZE])
            known = self.contents.get(sequence.block_table[i].block_id)
            if i >= sequence.num_shared_blocks:
                self.contents[sequence.block_table[i].block_id] = prefix
            else:
                assert known == prefix, "a shared block was overwritten"
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

    @rule()
    def forget(self) -> None:
        self.pool.forget_unused()

    @invariant()
    def whole(self) -> None:
        if not hasattr(self, "pool"):
            return
        self.pool.check_invariants([sequence.block_table for sequence in self.running])
        counts = self.pool.count_by_state()
        assert sum(counts.values()) == len(self.pool.blocks)
        if not self.running:
            assert counts["active"] == 0


PoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPoolMachine = PoolMachine.TestCase
