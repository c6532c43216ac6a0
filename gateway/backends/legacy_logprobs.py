"""The completions API's logprobs of one choice: parallel lists, offsets in characters of its text.

A token that is no whole text is written as its bytes, ``bytes:`` and hexadecimal escapes, as OpenAI
does, so that two of them never meet under one name.
"""

import codecs
from collections.abc import Sequence
from typing import Any

from gateway.backends.base import TokenLogprob
from gateway.backends.choice import finite
from gateway.backends.tokenizer import Tokenizer
from prefix_layer import TokenLogprob as EngineLogprob


class LegacyLogprobsWriter:
    """Writes entries in the order of the text; ``num_top`` alternatives beside the chosen token."""

    def __init__(self, tokenizer: Tokenizer, num_top: int) -> None:
        self._tokenizer = tokenizer
        self._num_top = num_top
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._offset = 0

    def prompt(
        self, token_ids: Sequence[int], logprobs: Sequence[EngineLogprob], num_unseen: int
    ) -> dict[str, Any]:
        """Write the echoed prompt; ``logprobs`` begin at its second token.

        The first ``num_unseen`` tokens stand for none of the text.
        """
        lists = _lists()
        for at, token_id in enumerate(token_ids):
            _, data = self._tokenizer.token(token_id)
            chosen, top = None, dict[str, float]()
            if at:
                entry = logprobs[at - 1]
                chosen = finite(entry.logprob)
                top = {self._name(i): finite(p) for i, p in entry.top[: self._num_top]}
            self._add(lists, _named(data), data, chosen, top, is_text=at >= num_unseen)
        return lists

    def write(self, entries: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Write entries of generated tokens."""
        lists = _lists()
        for entry in entries:
            top = {
                _named(bytes(other.bytes or b"")): other.logprob
                for other in entry.top_logprobs[: self._num_top]
            }
            data = bytes(entry.bytes or b"")
            self._add(lists, _named(data), data, entry.logprob, top, is_text=True)
        return lists

    def _add(
        self,
        lists: dict[str, Any],
        name: str,
        data: bytes,
        logprob: float | None,
        top: dict[str, float],
        *,
        is_text: bool,
    ) -> None:
        lists["tokens"].append(name)
        lists["token_logprobs"].append(logprob)
        lists["top_logprobs"].append(None if logprob is None else {name: logprob, **top})
        lists["text_offset"].append(self._offset)
        if is_text:
            self._offset += len(self._utf8.decode(data))

    def _name(self, token_id: int) -> str:
        return _named(self._tokenizer.token(token_id)[1])


def _lists() -> dict[str, Any]:
    return {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}


def _named(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)
