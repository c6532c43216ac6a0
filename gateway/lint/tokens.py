"""Token ids of many prompts of one model: text seen before is not tokenised again.

A prompt is cut where the tokenizer cuts it: at special tokens, before single spaces and behind
lines. This is checked against whole prompts first; a tokenizer that disagrees gets whole parts.
"""

import re
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, cast

from gateway.backends.history import ROLES, read_history
from gateway.backends.tokenizer import Tokenizer
from gateway.backends.tool_prompt import with_tools
from gateway.errors import BadRequest

MAX_CACHED_CHARS = 24 << 20
CHECKED_PROMPTS = 16
CHECKED_CHARS = 50_000  # of each
MAX_WORD_CHARS = 64  # a longer one is not worth keeping
MIN_LINE_CHARS = 32

_LINES = re.compile(r"(?<=\S\n)(?=\w)")
_SPACES = re.compile(r"(?<=\S)(?= \S)")


class PromptTokens:
    """Renders chat requests as the model is served, and tokenises them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        template = tokenizer.template
        self._knows_tools = template is not None and template.knows_tools
        self._shows_tools = template is not None and template.shows_tools
        self._parts: dict[str, bytes] = {}
        self._lines: dict[str, bytes] = {}
        self._words: dict[str, bytes] = {}  # without the space before them, or with a "\n" for none
        self._num_chars = self._num_line_chars = self._num_word_chars = 0
        self._left_to_check = CHECKED_PROMPTS
        self._cuts_words = True

    @cached_property
    def shows_call_ids(self) -> bool:
        """Whether the ids of tool calls are part of a prompt."""
        try:
            return self.render(_called("a"), []) != self.render(_called("b"), [])
        except BadRequest:
            return True

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
        if self._left_to_check and self._cuts_words:
            self._left_to_check -= 1
            start = rendered[:CHECKED_CHARS]
            whole = array("i", self._tokenizer.encode_rendered(start)).tobytes()
            if whole != self._encode(start):
                self._cuts_words = False
                self._parts.clear()
        return self._encode(rendered)

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
        lines = _LINES.split(text) if "\n" in text else [text]
        return b"".join([self._lines.get(line) or self._line(line) for line in lines])

    def _line(self, line: str) -> bytes:
        """Encode a line; longer ones are worth keeping, as prompts share them."""
        ids = b"".join(self._of_words(*_words(line)))
        if len(line) >= MIN_LINE_CHARS:
            self._num_line_chars += len(line)
            if self._num_line_chars > MAX_CACHED_CHARS:
                self._lines.clear()
                self._num_line_chars = len(line)
            self._lines[line] = ids
        return ids

    def _of_words(self, first: str, following: list[str]) -> Iterable[bytes]:
        """Encode a word, and words that stand behind a space each."""
        known = self._words
        found = [known.get(f"\n{first}"), *map(known.get, following)]
        if None not in found:
            return cast("list[bytes]", found)
        keys = [f"\n{first}", *following]
        missing = list(dict.fromkeys(k for k, ids in zip(keys, found, strict=True) if ids is None))
        texts = [key[1:] if key[:1] == "\n" else f" {key}" for key in missing]
        new = dict(zip(missing, self._whole(texts), strict=True))
        self._keep_words(new)
        return [new[key] if ids is None else ids for key, ids in zip(keys, found, strict=True)]

    def _keep_words(self, new: dict[str, bytes]) -> None:
        self._num_word_chars += sum(map(len, new))
        if self._num_word_chars > MAX_CACHED_CHARS:
            self._words.clear()
            self._num_word_chars = 0
        self._words.update((word, ids) for word, ids in new.items() if len(word) <= MAX_WORD_CHARS)

    def _whole(self, texts: list[str]) -> list[bytes]:
        return [array("i", ids).tobytes() for ids in self._tokenizer.encode_all_following(texts)]


def _words(line: str) -> tuple[str, list[str]]:
    """Cut a line before single spaces; much faster where all are single."""
    if "  " in line or " \n" in line or "\n " in line or "\t" in line or "\r" in line:
        first, *rest = _SPACES.split(line)
        return first, [word[1:] for word in rest]
    first, *rest = line.split(" ")
    return first, rest


def _called(call_id: str) -> list[dict[str, Any]]:
    """Return a chat with a tool call of an id."""
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "!"},
        {"role": "user", "content": "?"},
    ]


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
