"""The ids that the model generated, put back where a later prompt repeats their text.

Text that a model wrote may be tokenised otherwise than the model wrote it. Then the next turn of a
conversation would miss the KV of the answer before it, and the model would read other ids than it
wrote. Kept per tenant: the text of a prompt and its answer → the ids of both.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from threading import Lock

from gateway.backends.tokenizer import Tokenizer

_KEY_BYTES = 16


class GeneratedIds:
    """Encodes rendered prompts; thread-safe. Keeps ``max_tokens`` ids, the last used ones."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int = 1 << 22) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._kept: OrderedDict[bytes, array[int]] = OrderedDict()
        self._num_tokens = 0
        self._lock = Lock()

    def encode(self, salt: bytes, rendered: str) -> list[int]:
        """Return the ids of a prompt that `Tokenizer.render` gave.

        The longest beginning of it that is a kept prompt with its whole answer, up to the markup
        that ends a turn, gets the kept ids. All ids spell the same text as without.
        """
        if not self._kept:
            return self._tokenizer.encode_rendered(rendered)
        for end, key in reversed(list(self._ends(salt, rendered))):
            if (ids := self._find(key)) is not None:
                return [*ids, *self._tokenizer.encode_following(rendered[end:])]
        return self._tokenizer.encode_rendered(rendered)

    def remember(
        self, salt: bytes, rendered: str, prompt: Sequence[int], generated: Sequence[int]
    ) -> None:
        """Keep an answer's ids behind its prompt's, if they spell plain text."""
        if text := self._tokenizer.spell(generated):
            self.keep(salt, rendered + text, [*prompt, *generated])

    def keep(self, salt: bytes, rendered: str, token_ids: Sequence[int]) -> None:
        """Keep the ids of a prompt with its whole answer, up to where the turn ends."""
        digest = blake2b(rendered.encode(), key=salt, digest_size=_KEY_BYTES)
        ids = array("i", token_ids)
        with self._lock:
            self._num_tokens += len(ids) - len(self._kept.pop(digest.digest(), ()))
            self._kept[digest.digest()] = ids
            while self._num_tokens > self._max_tokens:
                self._num_tokens -= len(self._kept.popitem(last=False)[1])

    def _ends(self, salt: bytes, rendered: str) -> Iterator[tuple[int, bytes]]:
        """Give every place where a turn's text may end, with the key of all text before it."""
        digest = blake2b(key=salt, digest_size=_KEY_BYTES)
        done = 0
        for start in self._tokenizer.markup(rendered):
            stripped = max(len(rendered[done:start].rstrip()) + done, done)
            for end in sorted({stripped, start}):
                digest.update(rendered[done:end].encode())
                done = end
                yield end, digest.digest()

    def _find(self, key: bytes) -> "array[int] | None":
        with self._lock:
            ids = self._kept.get(key)
            if ids is not None:
                self._kept.move_to_end(key)
            return ids
