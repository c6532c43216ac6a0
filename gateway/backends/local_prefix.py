"""What an operator asks of the local model's prefix cache, in chat requests instead of tokens."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from gateway.backends.context import limit_of
from gateway.backends.explanation import Explainer, Explanation, Prompt
from gateway.backends.recent_prompts import RecentPrompts
from gateway.backends.recent_requests import RecentRequests
from gateway.backends.tokenizer import Tokenizer
from gateway.backends.volatile import VolatileReport, find_volatile
from gateway.errors import BackendError, BackendUnavailable, BadRequest, ContextTooLong
from prefix_layer import (
    PUBLIC_SALT,
    EngineClient,
    EngineFailed,
    EngineUnavailable,
    Probed,
    TreeNode,
)

Read = Callable[[dict[str, Any], bytes], Awaitable[Prompt]]


class WarmedPrompt(msgspec.Struct, frozen=True):
    """One warmed request in tokens; what was cached before was not computed again."""

    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    pinned: bool


class SharedPrefix(msgspec.Struct, frozen=True):
    """A cached prefix; ``tokens`` from the start of the prompt, ``text`` where its own begin.

    ``refs`` counts running requests that use it, ``hits`` all that ever did. ``tenant`` is a name,
    or a mask where no name is known.
    """

    id: str
    parent: str | None
    tenant: str
    tokens: int
    own_tokens: int
    refs: int
    hits: int
    children: int
    depth: int
    pinned: bool
    text: str


class PrefixTree(msgspec.Struct, frozen=True):
    """The most shared prefixes; ``total`` counts those left out as well."""

    prefixes: list[SharedPrefix]
    total: int


class LocalPrefix:
    """Explains, warms, pins and shows. ``read`` makes a prompt of a chat request."""

    def __init__(
        self,
        client: EngineClient,
        tokenizer: Tokenizer,
        recent: RecentPrompts,
        requests: RecentRequests,
        fingerprint: str,
        read: Read,
    ) -> None:
        self._client = client
        self._tokenizer = tokenizer
        self._recent = recent
        self._requests = requests
        self._read = read
        block_size = client.config.block_size
        self._explainer = Explainer(tokenizer, recent, fingerprint, block_size)

    @property
    def is_on(self) -> bool:
        """Whether prompts are cached at all."""
        return self._client.config.prefix_caching

    async def explain(self, body: dict[str, Any], salt: bytes) -> Explanation:
        """Say what a request would find in the cache, and why no more.

        Raises:
            BadRequest: the request cannot be served as it is.
            BackendUnavailable: the engine is down.
        """
        prompt = await self._read(body, salt)
        probed = await self._probe(prompt.token_ids, salt)
        if (refusal := self._refusal(len(prompt.token_ids))) is not None:
            return refusal
        if not self.is_on:
            tokens = len(prompt.token_ids)
            text = "prefix caching is off (local.prefix_caching)"
            return Explanation(tokens, 0, {}, None, "caching_off", text)
        is_others = await self._is_others(prompt, salt, probed.num_cached_tokens)
        return self._explainer.explain(prompt, salt, probed, is_others=is_others)

    async def warm(
        self, body: dict[str, Any], salt: bytes, *, pin: bool | None, public: bool
    ) -> WarmedPrompt:
        """Compute what is not cached of a request's prompt; pin, unpin or publish it.

        Raises:
            BadRequest: the request cannot be warmed, or no more may be pinned.
            BackendError: the engine is down, or broke.
        """
        prompt = await self._read(body, salt)
        try:
            warmed = await self._client.warm(prompt.token_ids, salt, pin=pin, public=public)
        except EngineUnavailable as error:
            raise BackendUnavailable(f"the local model is not available: {error}") from error
        except EngineFailed as error:
            raise _refused(error) from error
        self._recent.record(PUBLIC_SALT if public else salt, prompt.token_ids, prompt.turns)
        return WarmedPrompt(
            prompt_tokens=len(prompt.token_ids),
            cached_tokens=warmed.num_cached_tokens,
            computed_tokens=warmed.num_computed_tokens,
            pinned=warmed.num_pinned_tokens > 0,
        )

    async def tree(self, *, limit: int, depth: int, names: Mapping[bytes, str]) -> PrefixTree:
        """List the most shared prefixes, at most ``depth`` branchings down.

        ``names`` are the tenants' names by their salts.

        Raises:
            BackendUnavailable: the engine is down.
        """
        try:
            tree = await self._client.tree(limit=limit, depth=depth)
        except EngineUnavailable as error:
            raise BackendUnavailable(f"the local model is not available: {error}") from error
        return PrefixTree([self._shown(node, names) for node in tree.nodes], tree.num_nodes)

    async def _probe(self, token_ids: list[int], salt: bytes) -> Probed:
        try:
            return await self._client.probe(token_ids, salt)
        except EngineUnavailable as error:
            raise BackendUnavailable(f"the local model is not available: {error}") from error

    async def _is_others(self, prompt: Prompt, salt: bytes, num_cached: int) -> bool:
        """Say whether another tenant has a block or more of the prompt than this one has."""
        salts = (salt, PUBLIC_SALT)
        own = self._recent.nearest(salts, prompt.token_ids)
        known = max(num_cached, 0 if own is None else own.num_reusable)
        enough = known + self._client.config.block_size
        for other in self._recent.of_others(salts, prompt.token_ids):
            if other.num_common < enough:
                break
            probed = await self._probe(prompt.token_ids, other.seen.salt)
            if probed.num_cached_tokens >= enough:
                return True
        return False

    async def volatile(
        self, names: Mapping[bytes, str], tenant: bytes | None, max_chars: int | None = None
    ) -> VolatileReport:
        """Show what splits the prompts of late, of one tenant's salt or of all.

        ``max_chars`` reads the newest prompts only, of so many characters together.
        """
        recent = self._requests
        kept = recent.all() if max_chars is None else recent.newest(max_chars)
        requests = [r for r in kept if tenant is None or r.salt == tenant]
        block_size = self._client.config.block_size
        return await asyncio.to_thread(find_volatile, self._tokenizer, requests, names, block_size)

    def _refusal(self, num_tokens: int) -> Explanation | None:
        ready = self._client.ready
        if ready is None or num_tokens < ready.context_length:
            return None
        text = (
            f"would be refused: the prompt has {num_tokens} tokens, which leaves no room for an "
            f"answer; {limit_of(ready)}"
        )
        return Explanation(num_tokens, 0, {}, None, "too_long", text)

    def _shown(self, node: TreeNode, names: Mapping[bytes, str]) -> SharedPrefix:
        return SharedPrefix(
            id=node.node_id,
            parent=node.parent_id,
            tenant=names.get(node.salt) or _mask(node.salt),
            tokens=node.num_tokens,
            own_tokens=node.num_own_tokens,
            refs=node.num_refs,
            hits=node.num_hits,
            children=node.num_children,
            depth=node.depth,
            pinned=node.is_pinned,
            text=self._tokenizer.show(node.token_ids).strip("\ufffd"),
        )


def _mask(salt: bytes) -> str:
    if salt == PUBLIC_SALT:
        return "(shared)"
    return "tenant-" + blake2b(salt, digest_size=4, person=b"strata.mask").hexdigest()


def _refused(error: EngineFailed) -> BadRequest | BackendError:
    if error.code == "prompt_too_long":
        return ContextTooLong(error.message, param="messages")
    if error.code == "kv_exhausted":
        return BadRequest(error.message, param="pin", code="kv_exhausted")
    return BackendError(f"the local model failed: {error.message}", code=error.code)
