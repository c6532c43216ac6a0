"""The state of one request inside the engine. Knows its blocks, not how they are chosen."""

import time
from collections import Counter

import torch
from torch import Tensor

from prefix_layer.block import Block, BlockCopy
from prefix_layer.grammar import Matcher
from prefix_layer.messages import FinishReason, Generate, Sampling, TokenLogprob, Warm
from prefix_layer.tiers.fetch import Fetch


class Sequence:
    """Prompt and generated tokens of one request, and how much of their KV exists.

    ```
    token_ids    [ prompt .............. | generated ...... ]
    KV           [ num_computed_tokens ........ | pending ... ]
    block_table  [ num_shared_blocks . | private blocks .... ]   full and indexed ones first
    ```
    ``max_length`` bounds prompt and generated tokens together. ``num_cached_tokens`` is what the
    first admission found in the cache; a preempted sequence keeps it. ``pending_copy`` brings KV
    that counts as computed to the first private block; the next step begins with it. ``fetch``
    brings the blocks behind the computed ones from a tier; nothing is computed before it ends. A
    sequence with ``warm_up`` ends when its prompt is computed. ``matcher`` has accepted all
    generated tokens; ``unsent`` are those at the end that nobody has been told of.
    """

    def __init__(self, command: Generate, context_length: int) -> None:
        self.request_id = command.request_id
        self.salt = command.salt
        self.sampling = command.sampling
        self.token_ids = list(command.prompt)
        self.num_prompt_tokens = len(command.prompt)
        self.max_length = min(len(command.prompt) + command.sampling.max_tokens, context_length)
        self.block_table: list[Block] = []
        self.block_hashes: list[bytes] = []
        self.pending_copy: BlockCopy | None = None
        self.matcher: Matcher | None = None
        self.unsent: list[int] = []
        self.fetch: Fetch | None = None
        self.num_shared_blocks = 0
        self.num_computed_tokens = 0
        self.num_cached_tokens: int | None = None
        self.times_passed_over = 0
        self.waited_s = 0.0
        self._arrived_s = time.monotonic()
        self.was_preempted = False
        self.warm_up: Warm | None = None
        self.generated_counts: Counter[int] = Counter()
        self.prompt_logprobs: list[TokenLogprob] = []
        self.generator = _generator(command.sampling.seed)

    def admitted(self) -> None:
        """Take note that its turn has come, and of what was found cached; later turns count not."""
        if self.num_cached_tokens is None:
            self.num_cached_tokens = self.num_computed_tokens
            self.waited_s = time.monotonic() - self._arrived_s

    @classmethod
    def warming_up(cls, command: Warm, salt: bytes, context_length: int) -> "Sequence":
        """Make a sequence that computes a prompt and generates nothing."""
        sampling = Sampling(max_tokens=1, seed=0)
        prefill = Generate(command.request_id, command.prompt, sampling, salt)
        sequence = cls(prefill, context_length)
        sequence.warm_up = command
        return sequence

    def __repr__(self) -> str:
        return f"Sequence({self.request_id!r}, {self.num_computed_tokens}/{len(self.token_ids)})"

    @property
    def wants_prompt_logits(self) -> bool:
        """Whether the logits of all prompt rows are still needed, so that none may be reused."""
        return (
            self.sampling.num_prompt_logprobs is not None
            and len(self.prompt_logprobs) < self.num_prompt_tokens - 1
        )

    @property
    def first_prompt_logprobs(self) -> list[TokenLogprob] | None:
        """Those of the prompt, where asked for, while the first generated token is the last."""
        is_first = len(self.token_ids) == self.num_prompt_tokens + 1
        asked = self.sampling.num_prompt_logprobs is not None
        return self.prompt_logprobs if asked and is_first else None

    @property
    def num_prompt_top(self) -> int:
        """Alternatives wanted beside each token of the prompt."""
        return self.sampling.num_prompt_logprobs or 0

    @property
    def held_blocks(self) -> list[Block]:
        """Blocks that this sequence keeps from being evicted."""
        if self.pending_copy is None:
            return self.block_table
        return [*self.block_table, self.pending_copy.source]

    @property
    def num_pending_tokens(self) -> int:
        """Tokens whose KV must be computed before the next one can be sampled; 1 in decode."""
        return len(self.token_ids) - self.num_computed_tokens

    def append(self, token_id: int) -> FinishReason | None:
        """Add a sampled token and what must follow it; return why the sequence ends, if it does."""
        ended = self._append(token_id)
        if ended is None and self.matcher is not None:
            self.matcher.accept(token_id)
            ended = self.append_forced()
        return ended

    def append_forced(self) -> FinishReason | None:
        """Add the tokens that the grammar leaves no choice of; return why the sequence ends."""
        assert self.matcher is not None, f"{self} has no grammar"
        if self._may_be_forced:
            for token_id in self.matcher.take_forced():
                self.draw()
                if ended := self._append(token_id):
                    return ended
        return self._append(self.sampling.stop_token_ids[0]) if self.matcher.is_finished else None

    def draw(self) -> Tensor:
        """Take this sequence's next number, float64 (1,) in [0, 1): each token takes one."""
        return torch.rand(1, generator=self.generator, dtype=torch.float64)

    @property
    def _may_be_forced(self) -> bool:
        """Say whether nobody asks about the probability of a token that has no alternative."""
        return self.sampling.num_logprobs is None and not self.sampling.logit_bias

    def _append(self, token_id: int) -> FinishReason | None:
        self.token_ids.append(token_id)
        self.unsent.append(token_id)
        self.generated_counts[token_id] += 1
        if token_id in self.sampling.stop_token_ids:
            return "stop"
        return "length" if len(self.token_ids) >= self.max_length else None

    def take_unsent(self) -> list[int]:
        """Return the generated tokens since the last call."""
        unsent, self.unsent = self.unsent, []
        return unsent


def _generator(seed: int | None) -> torch.Generator:
    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed & 0xFFFF_FFFF_FFFF_FFFF)
    return generator
