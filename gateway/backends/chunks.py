"""OpenAI chat chunks and whole completions from an upstream, read as events.

Knows no connection. Fields of a delta that we do not read travel on in `Delta.extra`; finishes are
held until the end of the answer is certain, so a cut one never looks complete.
"""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob, Usage
from gateway.errors import BackendError, UpstreamStatus

DONE = b"[DONE]"
LEAST_LOGPROB = -9999.0  # what OpenAI sends for a token of no probability
ERROR_STATUSES = range(400, 600)
READ_FIELDS = frozenset({"role", "content", "refusal", "tool_calls"})


class Logprobs(msgspec.Struct):
    """Logprobs of the tokens of one delta or message."""

    content: list[dict[str, Any]] | None = None


class Choice(msgspec.Struct):
    """One choice of a chunk (``delta``) or of a whole completion (``message``)."""

    index: int = 0
    delta: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    finish_reason: str | None = None
    stop_reason: Any = None
    matched_stop: Any = None
    logprobs: Logprobs | None = None

    @property
    def stop(self) -> str | None:
        """The stop string that ended it: vLLM and SGLang tell, a token id is none."""
        told = self.stop_reason or self.matched_stop
        return told if isinstance(told, str) else None


class Cached(msgspec.Struct):
    """How much of the prompt the upstream took from its own cache."""

    cached_tokens: int | None = None


class Counts(msgspec.Struct):
    """Usage as the upstream reports it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Cached | None = None


class Chunk(msgspec.Struct):
    """A stream chunk or a whole completion; other fields of it are the upstream's own affair."""

    choices: list[Choice] | None = None
    usage: Counts | None = None
    error: Any = None


class ChunkReader:
    """Turns the JSON texts of one answer into events; ``num_choices`` is what was asked for."""

    def __init__(self, num_choices: int) -> None:
        self._reasons: dict[int, str | None] = dict.fromkeys(range(num_choices))
        self._stops: dict[int, str | None] = {}
        self._halves: dict[int, str] = {}
        self._usage = Usage()
        self._has_begun = False
        self._is_done = False

    @property
    def is_done(self) -> bool:
        """Whether the upstream has announced the end."""
        return self._is_done

    def read_all(self, texts: Iterable[bytes]) -> Iterator[Event]:
        """Give the deltas of chunks, up to ``[DONE]``.

        Raises:
            BackendError: not JSON, not OpenAI's shape, or an error report.
        """
        for text in texts:
            self._is_done = self._is_done or text == DONE
            if self._is_done:
                return
            if text:
                yield from self.read(text)

    def read(self, text: bytes) -> list[Event]:
        """Return the deltas of one chunk or completion.

        Raises:
            BackendError: not JSON, not OpenAI's shape, or an error report.
        """
        try:
            return self._events(_decoder.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._read_leniently(text)

    def _read_leniently(self, text: bytes) -> list[Event]:
        """Read what strict JSON refuses and servers send: halves of surrogate pairs, NaN."""
        try:
            events = self._events(msgspec.convert(json.loads(text), Chunk))
            msgspec.json.encode(events)
        except (msgspec.ValidationError, ValueError, RecursionError) as error:
            raise BackendError("the upstream sent something that is no chat completion") from error
        return events

    def _events(self, chunk: Chunk) -> list[Event]:
        if chunk.error:
            raise self._reported(chunk.error)
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        events = [delta for choice in chunk.choices or [] if (delta := self._delta(choice))]
        self._has_begun = self._has_begun or bool(events)
        return events

    def end(self) -> list[Event]:
        """Return the finishes and the final event.

        Raises:
            BackendError: a choice has no finish reason: the answer was cut.
        """
        unfinished = [index for index, reason in self._reasons.items() if not reason]
        if unfinished:
            raise BackendError(f"the answer ended without a finish_reason for choice {unfinished}")
        return [
            *(Delta(index, "\ufffd") for index in sorted(self._halves)),
            *(
                Finish(index, reason, self._stops.get(index))
                for index, reason in self._reasons.items()
                if reason
            ),
            Final(self._usage),
        ]

    def _delta(self, choice: Choice) -> Event | None:
        fields = choice.delta or choice.message or {}
        if choice.finish_reason or choice.index not in self._reasons:
            self._reasons[choice.index] = choice.finish_reason
            self._stops[choice.index] = choice.stop
        delta = Delta(
            choice.index,
            self._text(choice.index, fields.get("content")),
            fields.get("refusal"),
            _tool_calls(fields.get("tool_calls")),
            _logprobs(choice.logprobs),
            {key: value for key, value in fields.items() if key not in READ_FIELDS},
        )
        return None if delta == Delta(choice.index) else delta

    def _text(self, index: int, content: Any) -> str:
        """Return the text of a delta; a character cut into surrogate halves waits for its rest."""
        if not content:
            return ""
        if not isinstance(content, str):
            raise BackendError("the answer's content is not text")
        if not self._halves and content.isascii():
            return content
        text = self._halves.pop(index, "") + content
        if "\ud800" <= text[-1] <= "\udbff":
            self._halves[index], text = text[-1], text[:-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _reported(self, error: Any) -> BackendError:
        """Return the error of an error chunk; with its own status if nothing was given yet."""
        fields = error if isinstance(error, dict) else {"message": str(error)}
        status = fields.get("code")
        if not self._has_begun and isinstance(status, int) and status in ERROR_STATUSES:
            return UpstreamStatus(status, {"error": fields}, {})
        return BackendError(f"the upstream broke off: {fields.get('message') or 'no reason given'}")


_decoder = msgspec.json.Decoder(Chunk)


def _usage(counts: Counts) -> Usage:
    details = counts.prompt_tokens_details
    return Usage(
        counts.prompt_tokens or 0,
        counts.completion_tokens or 0,
        (details.cached_tokens or 0) if details else 0,
    )


def _tool_calls(calls: Any) -> list[dict[str, Any]]:
    """Return tool call deltas; those of a whole message have no index and get their place."""
    try:
        return [{"index": at, **call} for at, call in enumerate(calls or [])]
    except TypeError as error:
        raise BackendError("the answer's tool_calls are not a list of objects") from error


def _logprobs(logprobs: Logprobs | None) -> list[TokenLogprob]:
    if logprobs is None or not logprobs.content:
        return []
    try:
        return [_token_logprob(entry) for entry in logprobs.content]
    except (msgspec.ValidationError, TypeError) as error:
        raise BackendError("the answer's logprobs are not of OpenAI's shape") from error


def _token_logprob(entry: dict[str, Any]) -> TokenLogprob:
    top = [_finite(other) for other in entry.get("top_logprobs") or []]
    return msgspec.convert({**_finite(entry), "top_logprobs": top}, TokenLogprob)


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    logprob = entry.get("logprob")
    if isinstance(logprob, float) and not math.isfinite(logprob):
        return {**entry, "logprob": LEAST_LOGPROB}
    return entry
