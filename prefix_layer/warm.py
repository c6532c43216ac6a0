"""What an operator may ask of the cached prefixes: what is there, what is to stay. No tensors."""

from collections import Counter
from itertools import takewhile

from prefix_layer.block import Block
from prefix_layer.block_events import EvictedHashes
from prefix_layer.block_pool import BlockPool
from prefix_layer.hashing import PUBLIC_SALT
from prefix_layer.messages import Failed, GetTree, Probe, Probed, Tree, Warm, Warmed
from prefix_layer.pins import MAX_SHARE, Pins
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.prefix_index import PrefixMatch
from prefix_layer.sequence import Sequence
from prefix_layer.tiers import KvTiers
from prefix_layer.tree import continuation, shared_prefixes


class Operator:
    """Warm-ups, pins and views over one pool."""

    def __init__(
        self,
        pool: BlockPool,
        cache: PrefixCache,
        evicted: EvictedHashes,
        tiers: KvTiers | None = None,
    ) -> None:
        self.pins = Pins(pool)
        self._pool = pool
        self._cache = cache
        self._evicted = evicted
        self._tiers = tiers

    def begin(self, command: Warm, context_length: int) -> Sequence | Warmed | Failed:
        """Answer a warm-up that needs nothing computed; else make the sequence that does it."""
        if command.public:
            self._pool.index.publish(command.prompt)
        salt = PUBLIC_SALT if command.public else command.salt
        if command.pin and len(command.prompt) > self._max_pinned_tokens:
            return self._too_many_pins(command)
        match = self._cache.find(command.prompt, salt)
        if match.num_tokens == len(command.prompt):
            return self._answer(command, _table(match), match.num_tokens)
        return Sequence.warming_up(command, salt, context_length)

    def end(self, sequence: Sequence) -> Warmed | Failed:
        """Answer a warm-up whose prompt is computed; its blocks are still in use."""
        assert sequence.warm_up is not None, f"{sequence} is no warm-up"
        table = [block for block in sequence.block_table if block.indexed]
        return self._answer(sequence.warm_up, table, sequence.num_cached_tokens or 0)

    def probe(self, command: Probe) -> Probed:
        """Say what a request with this prompt would find."""
        token_ids = command.prompt[:-1]
        match = self._cache.find(token_ids, command.salt)
        size = self._pool.index.block_size
        hashes: list[bytes] = []
        self._pool.index.extend_hashes(hashes, command.salt, token_ids)
        stored = self._stored(hashes[len(match.blocks) :])
        num_device = len(match.blocks) * size if stored else match.num_tokens
        found = len(match.blocks) + stored.total()
        return Probed(
            request_id=command.request_id,
            num_cached_tokens=num_device + stored.total() * size,
            tokens_by_tier={"device": num_device, **{t: n * size for t, n in stored.items()}},
            num_evicted_tokens=self._num_evicted(hashes[found:]) * size,
            continuation=continuation(self._pool.index, match, command.salt),
        )

    def tree(self, command: GetTree) -> Tree:
        """List the most shared prefixes."""
        nodes, num_nodes = shared_prefixes(
            self._pool.index, self.pins.counts, command.limit, command.depth
        )
        return Tree(command.request_id, nodes, num_nodes)

    @property
    def _max_pinned_tokens(self) -> float:
        return MAX_SHARE * len(self._pool.blocks) * self._pool.index.block_size

    def _stored(self, hashes: list[bytes]) -> Counter[str]:
        """Count the first of these blocks that tiers hold, by tier."""
        found = [] if self._tiers is None else self._tiers.locate(hashes)
        return Counter(str(tier) for tier in takewhile(bool, found))

    def _num_evicted(self, hashes: list[bytes]) -> int:
        return len(list(takewhile(self._evicted.__contains__, hashes)))

    def _answer(self, command: Warm, table: list[Block], num_cached: int) -> Warmed | Failed:
        if command.pin and not self.pins.room_for(table):
            return self._too_many_pins(command)
        if command.pin:
            self.pins.pin(table)
        elif command.pin is False:
            self.pins.unpin(table)
        is_pinned = bool(table) and table[-1] in self.pins.counts
        return Warmed(
            request_id=command.request_id,
            num_cached_tokens=num_cached,
            num_computed_tokens=len(command.prompt) - num_cached,
            num_pinned_tokens=len(command.prompt) if is_pinned else 0,
        )

    def _too_many_pins(self, command: Warm) -> Failed:
        text = f"pinned prompts may fill {self._max_pinned_tokens:g} tokens of the KV pool in all"
        return Failed(command.request_id, text, "kv_exhausted")


def _table(match: PrefixMatch) -> list[Block]:
    return match.blocks if match.partial is None else [*match.blocks, match.partial.block]
