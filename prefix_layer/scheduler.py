"""Decides which tokens the next step computes. Knows block tables, not tensors.

Continuous batching under one token budget: sequences that decode first, then prompts under way in
chunks, then newcomers. Who has the longest cached prefix enters first, unless somebody has been
passed over too often. A newcomer whose prefix a running sequence is computing right now waits for
it and then starts from the cache. When the pool runs out, the youngest running sequence gives its
blocks back and is computed again later; what it has emitted stays emitted.
"""

from dataclasses import dataclass

from prefix_layer.block import BlockCopy
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.prefix_index import PrefixMatch
from prefix_layer.sequence import Sequence

_WINDOW = 16
_MAX_PASSED_OVER = 8
_WORTH_WAITING_TOKENS = 32  # computed twice, by all newcomers of a step together
_PREFETCHED = 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next ``num_tokens`` pending tokens of one sequence."""

    sequence: Sequence
    num_tokens: int

    @property
    def reaches_end(self) -> bool:
        """Say whether the logits of the last token give the sequence's next one."""
        return self.num_tokens == self.sequence.num_pending_tokens


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step computes; never empty."""

    chunks: list[Chunk]

    @property
    def num_tokens(self) -> int:
        """Rows of the flattened batch."""
        return sum(chunk.num_tokens for chunk in self.chunks)

    @property
    def copies(self) -> list[BlockCopy]:
        """Cached KV to be copied before the chunks are computed."""
        pending = [chunk.sequence.pending_copy for chunk in self.chunks]
        return [copy for copy in pending if copy is not None]


class Scheduler:
    """The waiting and the running sequences."""

    def __init__(
        self, cache: PrefixCache, block_size: int, max_batch_tokens: int, max_sequences: int
    ) -> None:
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.num_reused_tokens = 0
        self._cache = cache
        self._block_size = block_size
        self._max_batch_tokens = max_batch_tokens
        self._max_sequences = max_sequences

    def __contains__(self, request_id: str) -> bool:
        return self._find(request_id) is not None

    @property
    def has_work(self) -> bool:
        """Say whether any sequence is waiting or running."""
        return bool(self.waiting or self.running)

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence behind all others."""
        self.waiting.append(sequence)

    def abort(self, request_id: str) -> None:
        """Drop a sequence wherever it is; unknown ids are ignored."""
        sequence = self._find(request_id)
        if sequence in self.running:
            self.finish(sequence)
        elif sequence is not None:
            self.waiting.remove(sequence)
            self._cache.release(sequence)

    def finish(self, sequence: Sequence) -> None:
        """Take a running sequence out and release its blocks."""
        self.running.remove(sequence)
        self._cache.release(sequence)

    def schedule(self) -> Batch | None:
        """Choose the next step's tokens and make room for their KV; None when there are none."""
        chunks: dict[Sequence, Chunk] = {}
        num_running = len(self.running)
        self._continue_running(chunks)
        if len(self.running) == num_running:
            self._admit(chunks)
        for sequence in self.waiting[:_PREFETCHED]:
            self._cache.prefetch(sequence)
        loading = any(sequence.fetch for sequence in self.running)
        assert chunks or loading or not self.has_work, "there is work but none can be scheduled"
        return Batch(list(chunks.values())) if chunks else None

    def _continue_running(self, chunks: dict[Sequence, Chunk]) -> None:
        for sequence in sorted(self.running, key=lambda s: s.num_pending_tokens > 1):
            if sequence not in self.running or self._cache.load(sequence):
                continue
            num_tokens = min(sequence.num_pending_tokens, self._budget(chunks))
            if num_tokens:
                self._continue(sequence, num_tokens, chunks)

    def _continue(self, sequence: Sequence, num_tokens: int, chunks: dict[Sequence, Chunk]) -> None:
        while not self._cache.grow(sequence, num_tokens):
            victim = self.running[-1]
            chunks.pop(victim, None)
            self._preempt(victim)
            if victim is sequence:
                return
        chunks[sequence] = Chunk(sequence, num_tokens)

    def _preempt(self, sequence: Sequence) -> None:
        self.finish(sequence)
        sequence.times_passed_over = _MAX_PASSED_OVER
        sequence.was_preempted = True
        self.waiting.insert(0, sequence)

    def _admit(self, chunks: dict[Sequence, Chunk]) -> None:
        if not self.waiting or not self._has_room(chunks):
            return
        computing = self._hashes_under_way()
        num_twice = 0
        for sequence in self._admission_order():
            if not self._has_room(chunks):
                return
            match = self._cache.match(sequence)
            shared = self._num_under_way(sequence, match, computing)
            if num_twice + shared >= _WORTH_WAITING_TOKENS:
                continue
            if not self._cache.admit(sequence, match, spare=len(self.running)):
                return
            num_twice += shared
            self.waiting.remove(sequence)
            self.running.append(sequence)
            self.num_reused_tokens += sequence.num_computed_tokens
            sequence.admitted()
            if not self._cache.load(sequence):
                chunks[sequence] = Chunk(
                    sequence, min(sequence.num_pending_tokens, self._budget(chunks))
                )
            computing.update(sequence.block_hashes[sequence.num_shared_blocks :])

    def _admission_order(self) -> list[Sequence]:
        """Order the first of the queue, longest cached prefix first; count who is passed over."""
        window = self.waiting[:_WINDOW]
        overdue = [s for s in window if s.times_passed_over >= _MAX_PASSED_OVER]
        patient = [s for s in window if s.times_passed_over < _MAX_PASSED_OVER]
        if len(patient) > 1:
            patient.sort(key=lambda s: -self._cache.match(s).num_tokens)
        ordered = overdue + patient
        for place, sequence in enumerate(window):
            if ordered.index(sequence) > place:
                sequence.times_passed_over += 1
        return ordered

    def _hashes_under_way(self) -> set[bytes]:
        return {
            own_hash
            for sequence in self.running
            for own_hash in sequence.block_hashes[sequence.num_shared_blocks :]
        }

    def _num_under_way(self, sequence: Sequence, match: PrefixMatch, computing: set[bytes]) -> int:
        """Count the tokens that the sequence misses and another one is computing right now."""
        shared = len(match.blocks) * self._block_size - match.num_tokens
        for own_hash in sequence.block_hashes[len(match.blocks) :]:
            if own_hash not in computing:
                break
            shared += self._block_size
        return max(shared, 0)

    def _has_room(self, chunks: dict[Sequence, Chunk]) -> bool:
        return self._budget(chunks) > 0 and len(self.running) < self._max_sequences

    def _budget(self, chunks: dict[Sequence, Chunk]) -> int:
        return self._max_batch_tokens - sum(chunk.num_tokens for chunk in chunks.values())

    def _find(self, request_id: str) -> Sequence | None:
        for sequence in [*self.running, *self.waiting]:
            if sequence.request_id == request_id:
                return sequence
        return None
