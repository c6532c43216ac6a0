"""One choice of an answer that may call tools: token ids in, text and tool call deltas out.

Stop strings end text only, never a call: a client does not see how calls are written. Logprobs
entries are those of text; all generated tokens are counted.
"""

from collections import deque

from gateway.backends.base import Delta, TokenLogprob
from gateway.backends.choice import Choice
from gateway.backends.stop_matcher import StopMatcher
from gateway.backends.tool_parser import Found, ToolParser
from prefix_layer import Tokens


class CallingChoice:
    """Reads calls out of what ``choice``, which knows no stop strings, gives."""

    def __init__(self, choice: Choice, parser: ToolParser, stops: tuple[str, ...]) -> None:
        self.finish_reason: str | None = None
        self.index = choice.index
        self._choice = choice
        self._parser = parser
        self._stops = StopMatcher(stops)
        self._entries: deque[tuple[int, TokenLogprob]] = deque()  # where each one's text ends
        self._num_read = 0  # characters
        self._num_emitted = 0  # characters

    @property
    def num_tokens(self) -> int:
        """Tokens of the answer."""
        return self._choice.num_tokens

    @property
    def num_cached_tokens(self) -> int:
        """Tokens of the prompt that were found in the cache."""
        return self._choice.num_cached_tokens

    @property
    def token_ids(self) -> list[int]:
        """All generated tokens so far."""
        return self._choice.token_ids

    @property
    def stop(self) -> str | None:
        """The stop string that ended the text."""
        return self._stops.stop

    def push(self, tokens: Tokens) -> Delta | None:
        """Take what one step gave; return what may go out now."""
        delta = self._choice.push(tokens)
        found = Found() if delta is None else self._parser.push(delta.text)
        if delta is not None:
            self._num_read += len(delta.text)
            self._entries += [(self._num_read, entry) for entry in delta.logprobs]
        if self._choice.finish_reason is not None:
            found.text += self._parser.flush().text
        text = self._through_stops(found)
        return self._emit(text, [] if self._stops.stopped else found.calls)

    def _through_stops(self, found: Found) -> str:
        text = self._stops.push(found.text)
        if self._stops.stopped:
            self.finish_reason = "stop"
            return text
        reason = self._choice.finish_reason
        if reason is not None or self._parser.num_calls:
            text += self._stops.flush()
        self.finish_reason = "tool_calls" if reason == "stop" and self._parser.num_calls else reason
        return text

    def _emit(self, text: str, calls: list[dict[str, object]]) -> Delta | None:
        self._num_emitted += len(text)
        entries = []
        while self._entries and self._entries[0][0] <= self._num_emitted:
            entries.append(self._entries.popleft()[1])
        if not (text or calls or entries):
            return None
        return Delta(self.index, text, tool_calls=calls, logprobs=entries)
