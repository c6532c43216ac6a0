"""What crosses the line between the gateway and the engine process.

Knows no model, no socket and no HTTP: only token ids and numbers.
"""

from typing import Literal

import msgspec

from prefix_layer.errors import FailureCode

FinishReason = Literal["stop", "length"]


class Grammar(msgspec.Struct, frozen=True):
    """The language an answer must belong to: a JSON Schema as JSON, a Lark grammar or a regex.

    ``text`` is in the dialect of `prefix_layer.grammar`.
    """

    kind: Literal["json_schema", "lark", "regex"]
    text: str


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the next token is chosen and when a sequence ends.

    ``temperature`` 0 is greedy. ``top_k`` 0 and ``top_p`` 1 switch the filter off. Penalties are
    OpenAI's: presence and frequency are subtracted from logits, over the generated tokens only.
    ``logit_bias`` maps a token id to a number added to its logit. ``num_logprobs`` is None for
    none, 0..20 for the chosen token plus that many alternatives, taken from the log-softmax of the
    raw logits; ``num_prompt_logprobs`` asks the same for the prompt's own tokens. Generation ends
    on a ``stop_token_ids`` member (emitted last, finish ``stop``) or after ``max_tokens`` (finish
    ``length``). ``grammar`` leaves only tokens by which the answer can still become a member of its
    language; a stop token is one of them only where it is complete.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[int, float] = {}
    stop_token_ids: list[int] = []
    num_logprobs: int | None = None
    grammar: Grammar | None = None
    num_prompt_logprobs: int | None = None


class Hello(msgspec.Struct, frozen=True, tag=True):
    """Ask for `Ready`, answered once the model is loaded; `Failed` says why it cannot be."""

    request_id: str


class Generate(msgspec.Struct, frozen=True, tag=True):
    """Start one sequence. ``salt`` separates tenants: blocks are shared within one salt only."""

    request_id: str
    prompt: list[int]
    sampling: Sampling
    salt: bytes = b""


class Warm(msgspec.Struct, frozen=True, tag=True):
    """Compute a prompt's KV and no answer; answered by `Warmed` or `Failed`.

    ``pin`` True keeps its blocks until they are unpinned, False unpins them, None leaves that as it
    is. ``public``: the prompt is no secret, so its blocks are shared by all salts from now on.
    """

    request_id: str
    prompt: list[int]
    salt: bytes = b""
    pin: bool | None = None
    public: bool = False


class Probe(msgspec.Struct, frozen=True, tag=True):
    """Ask what is cached of a prompt, without using or counting it; answered by `Probed`."""

    request_id: str
    prompt: list[int]
    salt: bytes = b""


class GetTree(msgspec.Struct, frozen=True, tag=True):
    """Ask for the ``limit`` most shared prefixes down to ``depth`` branchings, as `Tree`."""

    request_id: str
    limit: int = 50
    depth: int = 16


class Abort(msgspec.Struct, frozen=True, tag=True):
    """Stop a sequence and free its blocks before the next step; unknown ids are ignored."""

    request_id: str


class GetStats(msgspec.Struct, frozen=True, tag=True):
    """Ask for `EngineStats`."""

    request_id: str


class Reset(msgspec.Struct, frozen=True, tag=True):
    """Forget every cached block that no running sequence holds; answered by `EngineStats`.

    Pinned blocks go too, unless ``keep_pinned``.
    """

    request_id: str
    keep_pinned: bool = False


class UnpinAll(msgspec.Struct, frozen=True, tag=True):
    """Pin nothing any more; what was pinned stays cached. Answered by `EngineStats`."""

    request_id: str


Command = Hello | Generate | Warm | Probe | GetTree | Abort | GetStats | Reset | UnpinAll


class TokenLogprob(msgspec.Struct, frozen=True):
    """Log-probability of the emitted token and of the most likely ones, best first."""

    token_id: int
    logprob: float
    top: list[tuple[int, float]] = []


class Tokens(msgspec.Struct, frozen=True, tag=True):
    """What one step gave one sequence; the last one carries ``finish_reason``.

    ``prompt_logprobs``, where asked for, come with the first one: an entry for every token of the
    prompt but its first. ``waited_s`` is how long it waited for its turn.
    """

    request_id: str
    token_ids: list[int]
    logprobs: list[TokenLogprob] | None = None
    finish_reason: FinishReason | None = None
    num_cached_tokens: int = 0
    prompt_logprobs: list[TokenLogprob] | None = None
    waited_s: float = 0.0


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The sequence ended without an answer; nothing of it may be stored."""

    request_id: str
    message: str
    code: FailureCode


class Warmed(msgspec.Struct, frozen=True, tag=True):
    """All KV of a prompt exists; cached and computed tokens sum to the prompt's."""

    request_id: str
    num_cached_tokens: int
    num_computed_tokens: int
    num_pinned_tokens: int = 0  # of the prompt, now


class Probed(msgspec.Struct, frozen=True, tag=True):
    """What is cached of a prompt.

    ``num_evicted_tokens`` counts the whole blocks behind the cached ones that were cached not long
    ago and had to go. ``continuation`` is what the cache holds instead of the prompt's next tokens.
    """

    request_id: str
    num_cached_tokens: int
    tokens_by_tier: dict[str, int]
    num_evicted_tokens: int
    continuation: list[int]


class TreeNode(msgspec.Struct, frozen=True):
    """A run of cached blocks without a branch, as a prefix.

    ``num_tokens`` counts from the prompt's start, ``token_ids`` are the node's own first ones.
    ``num_hits`` counts the requests that reused its last block, ``num_refs`` those that run now.
    """

    node_id: str
    parent_id: str | None
    salt: bytes
    num_tokens: int
    num_own_tokens: int
    num_hits: int
    num_refs: int
    num_children: int
    depth: int
    is_pinned: bool
    token_ids: list[int]


class Tree(msgspec.Struct, frozen=True, tag=True):
    """The most shared prefixes, most hits first; ``num_nodes`` counts those left out as well."""

    request_id: str
    nodes: list[TreeNode]
    num_nodes: int


class EngineStats(msgspec.Struct, frozen=True, tag=True):
    """One reading of the engine's counters; totals count from the start of the process."""

    request_id: str
    block_size: int
    num_blocks: int
    blocks_by_state: dict[str, int]  # free, cached, active; they sum to num_blocks
    bytes_by_tier: dict[str, int]
    tokens_by_source: dict[str, int]  # device, host, disk, computed
    evictions_by_tier: dict[str, int]
    num_waiting: int
    num_running: int
    batch_tokens: int  # tokens of the last step
    failures_by_tier: dict[str, int] = {}
    broken_by_tier: dict[str, int] = {}
    num_pinned_blocks: int = 0  # of the active ones


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The engine has loaded its model and takes commands.

    ``context_length`` is what fits the pool of the model's own, ``model_context_length``.
    """

    request_id: str
    model_fingerprint: str
    context_length: int
    vocab_size: int
    dtype: str
    device: str
    block_size: int
    num_blocks: int
    model_context_length: int = 0


Event = Tokens | Failed | EngineStats | Ready | Warmed | Probed | Tree
