"""One choice of an answer: token ids in, text deltas with their logprobs out.

An emitted token is one of which some text reached the client, or that was followed by one. The stop
token, and tokens that lie wholly in or behind a stop string, are not emitted: they have no logprobs
entry and are not counted. A logprobs entry travels with the delta that completes its token's text;
of a token that a stop string cuts, only the bytes before it count.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from gateway.backends.base import LOWEST_LOGPROB, Delta, TokenLogprob, TopLogprob
from gateway.backends.stop_matcher import StopMatcher
from gateway.backends.tokenizer import NOTHING_MARKED, Tokenizer
from prefix_layer import TokenLogprob as EngineLogprob
from prefix_layer import Tokens


class _Held(NamedTuple):
    """A token whose text has not gone out; ``start`` counts characters of the whole answer."""

    start: int
    text: str
    logprob: TokenLogprob | None

    def cut(self, end: int) -> TokenLogprob | None:
        """Return the entry without the bytes of what lies behind character ``end``."""
        if self.logprob is None or self.logprob.bytes is None or self.ends_by(end):
            return self.logprob
        data = bytes(self.logprob.bytes)
        behind = self.text[max(end - self.start, 0) :].encode()
        kept = data[: len(data) - self.num_open - len(behind)]
        return msgspec.structs.replace(self.logprob, bytes=list(kept))

    @property
    def num_open(self) -> int:
        """Bytes at the end that begin a character which a later token finishes."""
        data = self.logprob.bytes if self.logprob is not None else None
        return num_open_bytes(bytes(data or ()))

    def ends_by(self, end: int) -> bool:
        """Say whether also the character that the token leaves unfinished lies before ``end``."""
        return self.start + len(self.text) + (self.num_open > 0) <= end


class Choice:
    """Follows one sequence. ``finish_reason`` is None until it has ended.

    ``context`` are tokens before it, where its text goes on from theirs. The special tokens in
    ``marked`` become text, other ones don't.
    """

    def __init__(
        self,
        index: int,
        tokenizer: Tokenizer,
        stops: tuple[str, ...],
        context: Sequence[int] = (),
        marked: Mapping[str, int] = NOTHING_MARKED,
    ) -> None:
        self.finish_reason: str | None = None
        self.index = index
        self.num_tokens = 0
        self.num_cached_tokens = 0
        self._tokenizer = tokenizer
        self._detokenizer = tokenizer.detokenizer(marked)
        for token_id in context:
            self._detokenizer.push(token_id)
        self._stops = StopMatcher(stops)
        self._held: deque[_Held] = deque()
        self._taken: list[tuple[int, int]] = []  # token ids, characters of the answer up to them
        self._num_decoded = 0  # characters
        self._num_emitted = 0  # characters

    @property
    def stop(self) -> str | None:
        """The stop string that ended the text."""
        return self._stops.stop

    @property
    def token_ids(self) -> list[int]:
        """The ids whose text went out; empty when a stop string cut one of them."""
        ids = [token_id for token_id, end in self._taken if end <= self._num_emitted]
        is_whole = not ids or self._taken[len(ids) - 1][1] == self._num_emitted
        return ids if is_whole else []

    def push(self, tokens: Tokens) -> Delta | None:
        """Take what one step gave; return what may go out now."""
        self.num_cached_tokens = max(self.num_cached_tokens, tokens.num_cached_tokens)
        num_text = len(tokens.token_ids) - (tokens.finish_reason == "stop")
        text = ""
        for place, token_id in enumerate(tokens.token_ids[:num_text]):
            text += self._take(token_id, tokens.logprobs[place] if tokens.logprobs else None)
            if self._stops.stopped:
                break
        if self._stops.stopped:
            self.finish_reason = "stop"
        elif tokens.finish_reason is not None:
            text += self._end(tokens.finish_reason)
        return self._emit(text)

    def _take(self, token_id: int, logprob: EngineLogprob | None) -> str:
        piece = self._detokenizer.push(token_id)
        entry = None if logprob is None else self._entry(logprob, piece.data)
        self._held.append(_Held(self._num_decoded, piece.text, entry))
        self._num_decoded += len(piece.text)
        self._taken.append((token_id, self._num_decoded))
        return self._stops.push(piece.text)

    def _end(self, reason: str) -> str:
        tail = self._detokenizer.flush()
        self._num_decoded += len(tail)
        text = self._stops.push(tail)
        self.finish_reason = "stop" if self._stops.stopped else reason
        return text if self._stops.stopped else text + self._stops.flush()

    def _emit(self, text: str) -> Delta | None:
        self._num_emitted += len(text)
        whole = self.finish_reason is not None and not self._stops.stopped
        entries = []
        while self._held and (whole or self._is_out(self._held[0])):
            held = self._held.popleft()
            logprob = held.cut(self._num_emitted) if self._stops.stopped else held.logprob
            self.num_tokens += 1
            if logprob is not None:
                entries.append(logprob)
        return Delta(self.index, text, logprobs=entries) if text or entries else None

    def _is_out(self, held: _Held) -> bool:
        """Say whether all of a token's text went out, or all that ever will."""
        is_whole = held.ends_by(self._num_emitted)
        return held.start < self._num_emitted and (is_whole or self._stops.stopped)

    def _entry(self, logprob: EngineLogprob, data: bytes) -> TokenLogprob:
        name, _ = self._tokenizer.token(logprob.token_id)
        return TokenLogprob(
            token=name,
            logprob=finite(logprob.logprob),
            bytes=list(data),
            top_logprobs=[self._alternative(*alternative) for alternative in logprob.top],
        )

    def _alternative(self, token_id: int, logprob: float) -> TopLogprob:
        name, data = self._tokenizer.token(token_id)
        return TopLogprob(name, finite(logprob), list(data))


def num_open_bytes(data: bytes) -> int:
    """Count the bytes at the end that begin a UTF-8 character and do not finish it."""
    for length in range(1, min(len(data), 3) + 1):
        lead = data[-length]
        if lead & 0xC0 != 0x80:  # noqa: PLR2004 - no continuation byte
            needed = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1  # noqa: PLR2004
            return length if needed > length else 0
    return 0


def finite(logprob: float) -> float:
    """Clamp to what JSON and the API allow; NaN counts as the lowest."""
    return min(logprob, 0.0) if logprob >= LOWEST_LOGPROB else LOWEST_LOGPROB
