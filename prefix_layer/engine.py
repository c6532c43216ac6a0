"""The core: schedule → run → sample → commit. Knows no sockets and no text.

One thread, but for grammars: they compile, and mask tokens, while the model computes.
"""

import time

import torch
from torch import Tensor

from prefix_layer.block_events import BlockListener, EvictedHashes
from prefix_layer.block_pool import BlockPool
from prefix_layer.compiling import Compiling, GrammarCompiler
from prefix_layer.config import EngineConfig
from prefix_layer.engine_parts import (
    allocate,
    count_blocks,
    eviction_policy,
    kv_fingerprint,
    open_events,
)
from prefix_layer.masker import Masker
from prefix_layer.messages import (
    EngineStats,
    Failed,
    Generate,
    GetTree,
    Probe,
    Probed,
    Ready,
    Tokens,
    Tree,
    Warm,
    Warmed,
)
from prefix_layer.model import load_model
from prefix_layer.prefix_cache import PrefixCache
from prefix_layer.prefix_index import PrefixIndex
from prefix_layer.replies import failed, no_choice, sampling_fault, tokens_of
from prefix_layer.runner import Runner
from prefix_layer.sampler import Choice, sample
from prefix_layer.scheduler import Scheduler
from prefix_layer.self_check import prefill_s
from prefix_layer.sequence import Sequence
from prefix_layer.speedup import prove_and_speed_up
from prefix_layer.tiers import open_tiers
from prefix_layer.warm import Operator

_LOAD_WAIT_S = 0.02
_MEASURED_TOKENS = 64
_COPIES_A_STEP = 2
_COPIES_AT_REST = 32


class Engine:
    """A model, a pool of KV blocks and the sequences that use them.

    Every added sequence ends in exactly one of: a `Tokens` with ``finish_reason``, a `Warmed`, a
    `Failed`, or an abort. An exception from `step` leaves blocks and counts whole; abort what was
    in flight.

    Raises:
        ModelLoadError: the model or the pool can't be had; one clear line.
        UnknownEviction: the configuration names a policy there is not.
    """

    def __init__(self, config: EngineConfig) -> None:
        num_blocks = count_blocks(config)
        policy = eviction_policy(config, num_blocks)
        if config.num_threads is not None:
            torch.set_num_threads(config.num_threads)
        self._config = config
        self._model = load_model(config)
        self._kv = allocate(self._model, config, num_blocks * config.block_size)
        self._tiers = open_tiers(config, self._views, self._model.fingerprint)
        index = PrefixIndex(config.block_size, kv_fingerprint(self._model, config))
        evicted = EvictedHashes()
        listeners: list[BlockListener] = [evicted]
        self._events = open_events(config)
        if self._events is not None:
            listeners.append(self._events)
        if self._tiers is not None:
            listeners.append(self._tiers)
        self._pool = BlockPool(num_blocks, index, policy, listeners)
        self._cache = PrefixCache(self._pool, enabled=config.prefix_caching, tiers=self._tiers)
        self._operator = Operator(self._pool, self._cache, evicted, self._tiers)
        self._scheduler = Scheduler(
            self._cache, config.block_size, config.max_batch_tokens, config.max_sequences
        )
        self._runner = Runner(self._model, self._kv, config.block_size)
        self._compiling = Compiling(GrammarCompiler(config.model_path, self._model.vocab_size))
        self._masker = Masker()
        self._num_computed_tokens = 0
        self._batch_tokens = 0
        self._speed_up(num_blocks)
        self.ready = self._describe(num_blocks)

    @property
    def has_work(self) -> bool:
        """Say whether `step` has anything to do."""
        return self._scheduler.has_work or len(self._compiling) > 0

    def add(self, command: Generate | Warm) -> Failed | Warmed | None:
        """Queue a sequence; a `Failed` says at once that it can never run.

        A `Warmed` says at once that nothing is left to compute.
        """
        refused = self._refuse(command)
        if refused is not None:
            return refused
        context_length = self.ready.context_length
        if isinstance(command, Generate):
            begun: Sequence | Warmed | Failed = Sequence(command, context_length)
        else:
            begun = self._operator.begin(command, context_length)
        if not isinstance(begun, Sequence):
            return begun
        if begun.sampling.grammar is None:
            self._scheduler.add(begun)
        else:
            self._compiling.add(begun)
        return None

    def abort(self, request_id: str) -> None:
        """Drop a sequence and release its blocks; unknown ids are ignored."""
        self._scheduler.abort(request_id)
        self._compiling.abort(request_id)

    def probe(self, command: Probe) -> Probed:
        """Say what a request with this prompt would find."""
        return self._operator.probe(command)

    def tree(self, command: GetTree) -> Tree:
        """List the most shared prefixes."""
        return self._operator.tree(command)

    def step(self) -> list[Tokens | Failed | Warmed]:
        """Compute one batch; return what it gave to each sequence that got a token or ended."""
        if self._tiers is not None:
            self._tiers.begin_step()
            self._tiers.write_through(_COPIES_A_STEP)
        admitted = self._admit_compiled()
        batch = self._scheduler.schedule()
        if batch is None:
            self._wait_for_tiers()
            self._publish()
            return admitted
        begin = time.perf_counter()
        reached = [i for i, chunk in enumerate(batch.chunks) if chunk.reaches_end]
        ended = [i for i in reached if batch.chunks[i].sequence.warm_up is None]
        warm = [batch.chunks[i].sequence for i in reached if batch.chunks[i].sequence.warm_up]
        sampled = [batch.chunks[i].sequence for i in ended]
        masks = self._masker.begin(sampled)
        self._runner.copy(batch.copies)
        logits = self._runner.run(batch.chunks)
        choices = sample(sampled, logits[ended], masks()) if sampled else []
        for chunk in batch.chunks:
            self._cache.commit(chunk.sequence, chunk.num_tokens)
        self._batch_tokens = batch.num_tokens
        self._num_computed_tokens += batch.num_tokens
        if self._tiers is not None:
            self._tiers.saw_step(batch.num_tokens, time.perf_counter() - begin)
        emitted = [self._emit(s, choice) for s, choice in zip(sampled, choices, strict=True)]
        ended_warm = [*map(self._end_warm_up, warm)]
        self._publish()
        return [*admitted, *emitted, *ended_warm]

    def rest(self) -> None:
        """Use a moment without work to copy reused blocks to the tiers."""
        if self._tiers is not None and not self.has_work:
            self._tiers.write_through(_COPIES_AT_REST)

    def stats(self, request_id: str) -> EngineStats:
        """Read the counters."""
        self._pool.drop_expired()
        if self._tiers is not None:
            self._tiers.look_around()
        tally = None if self._tiers is None else self._tiers.tally
        by_state = self._pool.count_by_state()
        block_bytes = self._kv.bytes_per_slot * self._config.block_size
        return EngineStats(
            request_id=request_id,
            block_size=self._config.block_size,
            num_blocks=len(self._pool.blocks),
            blocks_by_state={str(state): count for state, count in by_state.items()},
            bytes_by_tier={
                "device": (by_state["cached"] + by_state["active"]) * block_bytes,
                **(tally.bytes_by_tier() if tally else {}),
            },
            tokens_by_source={
                "device": self._scheduler.num_reused_tokens,
                **(tally.tokens_by_tier() if tally else {}),
                "computed": self._num_computed_tokens,
            },
            evictions_by_tier={
                "device": self._pool.num_evicted,
                **(tally.evictions_by_tier() if tally else {}),
            },
            failures_by_tier=tally.failures_by_tier() if tally else {},
            broken_by_tier=tally.broken_by_tier() if tally else {},
            num_waiting=len(self._scheduler.waiting) + len(self._compiling),
            num_running=len(self._scheduler.running),
            batch_tokens=self._batch_tokens,
            num_pinned_blocks=len(self._operator.pins.counts),
        )

    def reset(self, *, keep_pinned: bool = False) -> None:
        """Forget all cached KV that no running sequence holds: pinned blocks and tiers too."""
        if not keep_pinned:
            self._operator.pins.unpin_all()
        self._pool.forget_unused()
        if self._events is not None and not len(self._pool.index):
            self._events.cleared()
        self._publish()
        if self._tiers is not None:
            self._tiers.reset()

    def unpin_all(self) -> None:
        """Pin nothing any more; what was pinned stays cached until it has to make room."""
        self._operator.pins.unpin_all()

    def close(self) -> None:
        """Stop the thread that serves the disk, and tell routers no more."""
        if self._events is not None:
            self._events.close()
        if self._tiers is not None:
            self._tiers.close()

    def check_invariants(self) -> None:
        """Assert that blocks, index and sequences agree with each other."""
        running = self._scheduler.running
        held = [sequence.held_blocks for sequence in running]
        self._pool.check_invariants([*held, *self._operator.pins.tables])
        for sequence in running:
            room = len(sequence.block_table) * self._config.block_size
            assert sequence.num_computed_tokens <= room, f"{sequence} computed beyond its blocks"
            assert sequence.num_computed_tokens < len(sequence.token_ids), f"{sequence} is idle"
        if self._tiers is not None:
            sequences = [*running, *self._scheduler.waiting]
            self._tiers.check_invariants([s.fetch for s in sequences if s.fetch])
        for sequence in self._scheduler.waiting:
            assert not sequence.held_blocks, f"{sequence} waits and holds blocks"

    def _admit_compiled(self) -> list[Tokens | Failed | Warmed]:
        """Queue the sequences whose grammars are compiled; return what ends at once."""
        if not self._scheduler.has_work:
            self._compiling.nap()
        events: list[Tokens | Failed | Warmed] = []
        for sequence, fault in self._compiling.take_done():
            if fault is not None:
                events.append(failed(sequence.request_id, "bad_grammar", fault))
            elif (finish_reason := sequence.append_forced()) is not None:
                events.append(tokens_of(sequence, None, finish_reason))
            else:
                self._scheduler.add(sequence)
        return events

    def _views(self, block_id: int) -> list[Tensor]:
        return self._kv.block(block_id, self._config.block_size)

    def _publish(self) -> None:
        if self._events is not None:
            self._events.publish()

    def _wait_for_tiers(self) -> None:
        if self._tiers is not None and self.has_work:
            self._tiers.wait(_LOAD_WAIT_S)

    def _emit(self, sequence: Sequence, choice: Choice | None) -> Tokens | Failed:
        if choice is None:
            self._scheduler.finish(sequence)
            return no_choice(sequence)
        finish_reason = sequence.append(choice.token_id)
        if finish_reason is not None:
            self._scheduler.finish(sequence)
        return tokens_of(sequence, choice.logprob, finish_reason)

    def _end_warm_up(self, sequence: Sequence) -> Warmed | Failed:
        answer = self._operator.end(sequence)
        self._scheduler.finish(sequence)
        return answer

    def _refuse(self, command: Generate | Warm) -> Failed | None:
        """Say why a command can never run; None when it can."""
        length, request_id = len(command.prompt), command.request_id
        if length >= self._model.context_length:
            text = f"the prompt has {length} tokens, the context {self._model.context_length}"
            return failed(request_id, "prompt_too_long", text)
        if length >= self.ready.context_length:
            text = f"the prompt has {length} tokens, the KV pool {self.ready.context_length}"
            return failed(request_id, "kv_exhausted", text)
        fault = self._find_fault(command)
        return failed(request_id, "engine_error", fault) if fault else None

    def _find_fault(self, command: Generate | Warm) -> str | None:
        vocabulary = range(self._model.vocab_size)
        if not command.prompt:
            return "the prompt is empty"
        if min(command.prompt) < 0 or max(command.prompt) not in vocabulary:
            return f"the prompt has token ids outside of 0..{vocabulary[-1]}"
        if command.request_id in self._scheduler or command.request_id in self._compiling:
            return f"request id {command.request_id!r} is in use"
        return None if isinstance(command, Warm) else sampling_fault(command.sampling, vocabulary)

    def _speed_up(self, num_blocks: int) -> None:
        """Make the model faster where that changes nothing, and tell the tiers what it costs."""
        size = self._config.block_size
        prove_and_speed_up(self._model, self._kv, self._runner, size, num_blocks)
        if self._tiers is not None:
            room = min(num_blocks * size, self._model.context_length)
            num_tokens = min(_MEASURED_TOKENS, room)
            self._tiers.saw_step(num_tokens, prefill_s(self._runner, num_tokens, size))

    def _describe(self, num_blocks: int) -> Ready:
        return Ready(
            request_id="",
            model_fingerprint=self._model.fingerprint,
            context_length=min(self._model.context_length, num_blocks * self._config.block_size),
            vocab_size=self._model.vocab_size,
            dtype=str(self._model.dtype).removeprefix("torch."),
            device=str(self._model.device),
            block_size=self._config.block_size,
            num_blocks=num_blocks,
            model_context_length=self._model.context_length,
        )
