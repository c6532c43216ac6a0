"""Token ids of many prompts of one model: text seen before is not tokenised again.

A prompt is cut where the tokenizer cuts it: at special tokens, before single spaces and behind
lines. This is checked against whole prompts first; a tokenizer that disagrees gets whole parts.
"""

import re
from array import array
from collections.abc import Sequence
from typing import Any

from gateway.backends.history import ROLES, read_history
from gateway.backends.tokenizer import Tokenizer
from gateway.backends.tool_prompt import with_tools
from gateway.errors import BadRequest

MAX_CACHED_CHARS = 24 << 20
CHECKED_PROMPTS = 16
MAX_WORD_CHARS = 64  # a longer one is not worth keeping

_LINES = re.compile(r"(?<=\S\n)(?=\w)")
_SPACES = re.compile(r"(?<=\S)(?= \S)|(?<=\S\n)(?=\w)")


class PromptTokens:
    """Renders chat requests as the model is served, and tokenises them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        template = tokenizer.template
        self._knows_tools = template is not None and template.knows_tools
        self._shows_tools = template is not None and template.shows_tools
        self._parts: dict[str, bytes] = {}
        self._words: dict[str, bytes] = {}
        self._num_chars = self._num_word_chars = 0
        self._left_to_check = CHECKED_PROMPTS
        self._cuts_words = True

    def render(self, messages: list[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> str:
        """Return the prompt's text as `Tokenizer.render` gives it.

        Raises:
            BadRequest: the messages are malformed, or the template refuses them.
        """
        if messages[0]["role"] == "prompt":
            return str(messages[0]["content"])
        known = [_known(message) for message in messages]
        if self._tokenizer.template is None:
            return "\n".join(m["content"] for m in read_history(known, knows_tools=False))
        history = read_history(known, knows_tools=self._knows_tools)
        shown = list(tools)
        if shown and not self._shows_tools:
            history = with_tools(history, shown)
        return self._tokenizer.render(history, shown)

    def encode(self, rendered: str) -> bytes:
        """Return a rendered prompt's ids, four bytes each."""
        ids = self._encode(rendered)
        if self._left_to_check and self._cuts_words:
            self._left_to_check -= 1
            whole = array("i", self._tokenizer.encode_rendered(rendered)).tobytes()
            if whole != ids:
                self._cuts_words = False
                self._parts.clear()
                return whole
        return ids

    def _encode(self, rendered: str) -> bytes:
        starts = list(self._tokenizer.markup(rendered))
        begins = self._first(rendered[: starts[0] if starts else None])
        ends = [*starts[1:], len(rendered)]
        parts = (rendered[start:end] for start, end in zip(starts, ends, strict=False))
        return b"".join([begins, *map(self._part, parts)])

    def _first(self, text: str) -> bytes:
        """Encode the part that begins a prompt, in which some tokenizers add a space."""
        key = f"\0{text}"
        if (found := self._parts.get(key)) is None:
            found = array("i", self._tokenizer.encode_rendered(text)).tobytes()
            self._keep(key, found)
        return found

    def _part(self, text: str) -> bytes:
        if (found := self._parts.get(text)) is None:
            found = self._by_words(text) if self._cuts_words else self._whole([text])[0]
            self._keep(text, found)
        return found

    def _keep(self, text: str, ids: bytes) -> None:
        self._num_chars += len(text)
        if self._num_chars > MAX_CACHED_CHARS:
            self._parts.clear()
            self._num_chars = len(text)
        self._parts[text] = ids

    def _by_words(self, text: str) -> bytes:
        words = _words(text)
        known = self._words
        missing = [word for word in dict.fromkeys(words) if word not in known]
        if missing:
            self._num_word_chars += sum(map(len, missing))
            if self._num_word_chars > MAX_CACHED_CHARS:
                known.clear()
                missing, self._num_word_chars = list(dict.fromkeys(words)), 0
            found = dict(zip(missing, self._whole(missing), strict=True))
            known.update((w, ids) for w, ids in found.items() if len(w) <= MAX_WORD_CHARS)
            return b"".join([found.get(word) or known[word] for word in words])
        return b"".join([known[word] for word in words])

    def _whole(self, texts: list[str]) -> list[bytes]:
        return [array("i", ids).tobytes() for ids in self._tokenizer.encode_all_following(texts)]


def _words(text: str) -> list[str]:
    """Cut a text before single spaces and behind single line ends; much faster without others."""
    if "  " in text or " \n" in text or "\n " in text or "\t" in text or "\r" in text:
        return _SPACES.split(text)
    first, *rest = text.split(" ")
    words = [first, *(f" {word}" for word in rest)]
    if "\n" not in text:
        return words
    cut: list[str] = []
    for word in words:
        if "\n" in word:
            cut += _LINES.split(word)
        else:
            cut.append(word)
    return cut


def _known(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message that templates can take: text in place of images, a role they know."""
    role = message["role"] if message["role"] in ROLES else "user"
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(_part_text(part) for part in content)
    elif content is not None and not isinstance(content, str):
        raise BadRequest("content must be a string or a list of parts", param="content")
    return {**message, "role": role, "content": content}


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else "[image]"
