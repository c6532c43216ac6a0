"""What an engine has KV of after the requests that we know of, and what a next one will find.

Mirrors Strata's own engine: prompts and answers stay cached token by token, an answer that comes
back keeps its ids, and one token of a prompt is always computed. Not modelled: eviction, other
clients' prompts, and answers that came from a response cache.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.backends.prompt_reader import PromptReader
from gateway.backends.tokenizer import Tokenizer

_SALT = b""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens of a prompt, and how many of them are expected to be in the cache."""

    prompt_tokens: int
    hit_tokens: int

    @property
    def share(self) -> float:
        """Share of the prompt that need not be computed, 0..1."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def computed_tokens(self) -> int:
        """Tokens that must be computed before the first one of the answer."""
        return self.prompt_tokens - self.hit_tokens


class KvMirror:
    """One tenant's cached token ids. ``block_size`` is 1 where an engine reuses single tokens.

    Tokens of an answer whose ids are not known stand as negative numbers, each used once.
    """

    def __init__(self, tokenizer: Tokenizer, block_size: int = 1) -> None:
        self._reader = PromptReader(tokenizer)
        self._block_size = block_size
        self._cached: list[list[int]] = []
        self._unknown = itertools.count(-1, -1)

    def estimate(self, body: dict[str, Any]) -> Estimate:
        """Say what a request with this body would find.

        Raises:
            BadRequest: the model cannot be asked so.
        """
        _, prompt = self._reader.read(body, _SALT)
        ids = prompt.token_ids
        longest = max((_num_common(ids, known) for known in self._cached), default=0)
        usable = min(longest, len(ids) - 1)
        return Estimate(len(ids), usable - usable % self._block_size)

    def sent(self, body: dict[str, Any]) -> None:
        """Take note that a request was computed, whatever its answer is."""
        _, prompt = self._reader.read(body, _SALT)
        self._cached = [*_others(self._cached, prompt.token_ids), prompt.token_ids]

    def saw(
        self, body: dict[str, Any], text: str, num_tokens: int | None, *, is_whole: bool
    ) -> None:
        """Take note that a request was computed and answered with ``text``.

        ``num_tokens`` is how many tokens the answer has, as its usage says; None estimates it.
        ``is_whole`` is False of an answer that its token limit ended: its last one has no KV yet.
        """
        _, prompt = self._reader.read(body, _SALT)
        generated = self._reader.tokenizer.encode_following(text) if text else []
        if num_tokens is not None and len(generated) != num_tokens:
            generated = list(itertools.islice(self._unknown, num_tokens))
        ids = [*prompt.token_ids, *generated]
        if generated:
            self._reader.generated.keep(_SALT, prompt.text + text, ids)
        self._cached = [*_others(self._cached, ids), ids if is_whole else ids[:-1]]

    def text_after(self, body: dict[str, Any], answer: dict[str, Any]) -> str:
        """Return how the template writes an answer behind this request's prompt.

        It is what a model is expected to have written where its own text is not known. Empty where
        the template writes the turns before it otherwise from then on.
        """
        _, before = self._reader.read(body, _SALT)
        longer = {**body, "messages": [*body["messages"], answer]}
        _, after = self._reader.read(longer, _SALT)
        if not after.text.startswith(before.text):
            return ""
        rest = after.text[len(before.text) :]
        end = next(iter(self._reader.tokenizer.markup(rest)), len(rest))
        return rest[:end].rstrip("\n")


def _others(cached: Sequence[list[int]], ids: list[int]) -> Iterator[list[int]]:
    """Give the sequences that a new one does not contain."""
    return (known for known in cached if _num_common(known, ids) < len(known))


def _num_common(a: Sequence[int], b: Sequence[int]) -> int:
    pairs = zip(a, b, strict=False)
    return next((at for at, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))
