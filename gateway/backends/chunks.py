"""OpenAI chunks and whole answers from an upstream, chat's and completions', read as events.

Knows no connection. Fields that we do not read travel on in the deltas; finishes are held until the
end of the answer is certain, so a cut one never looks complete.
"""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gateway.backends.base import LOWEST_LOGPROB, Delta, Event, Final, Finish, TokenLogprob, Usage
from gateway.errors import BackendError, UpstreamStatus

DONE = b"[DONE]"
ERROR_STATUSES = range(400, 600)
DELTA_FIELDS = frozenset({"role", "content", "refusal", "tool_calls"})
CHOICE_FIELDS = frozenset({"index", "delta", "message", "text", "finish_reason", "logprobs"})
ANSWER_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage", "error"})


class Logprobs(msgspec.Struct):
    """Logprobs of the tokens of one delta or message."""

    content: list[dict[str, Any]] | None = None
    refusal: list[dict[str, Any]] | None = None


class Choice(msgspec.Struct):
    """One choice: of a chunk (``delta``), a whole answer (``message``), a completion (``text``)."""

    index: int = 0
    delta: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    text: str | None = None
    finish_reason: str | None = None
    stop_reason: Any = None
    matched_stop: Any = None
    logprobs: dict[str, Any] | None = None

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
    """A stream chunk or a whole completion."""

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
        self._extra: dict[str, Any] = {}
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
            return self._events(_decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._read_leniently(text)

    def _read_leniently(self, text: bytes) -> list[Event]:
        """Read what strict JSON refuses and servers send: halves of surrogate pairs, NaN."""
        try:
            events = self._events(json.loads(text))
            msgspec.json.encode(events)
        except (msgspec.ValidationError, ValueError, RecursionError) as error:
            raise BackendError("the upstream sent something that is no chat completion") from error
        return events

    def _events(self, tree: Any) -> list[Event]:
        chunk = msgspec.convert(tree, Chunk)
        if chunk.error:
            raise self._reported(chunk.error)
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage, tree["usage"])
        pairs = zip(chunk.choices or [], tree.get("choices") or [], strict=True)
        events: list[Event] = [d for choice, raw in pairs if (d := self._delta(choice, raw))]
        if extra := self._news(tree):
            events.insert(
                0, Delta(chunk.choices[0].index if chunk.choices else 0, answer_extra=extra)
            )
        self._has_begun = self._has_begun or bool(events)
        return events

    def _news(self, tree: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of the whole answer that this chunk changes."""
        if tree.keys() <= ANSWER_FIELDS:
            return {}
        extra = {
            key: value
            for key, value in tree.items()
            if key not in ANSWER_FIELDS and value is not None and self._extra.get(key) != value
        }
        self._extra |= extra
        return extra

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

    def _delta(self, choice: Choice, raw: dict[str, Any]) -> Event | None:
        fields = choice.delta or choice.message or {}
        if choice.finish_reason or choice.index not in self._reasons:
            self._reasons[choice.index] = choice.finish_reason
            self._stops[choice.index] = choice.stop
        content, refusal, legacy = _logprobs(choice.logprobs)
        delta = Delta(
            choice.index,
            self._text(choice.index, fields.get("content") or choice.text),
            fields.get("refusal"),
            _tool_calls(fields.get("tool_calls")),
            content,
            _others(fields, DELTA_FIELDS),
            refusal,
            {**_others(raw, CHOICE_FIELDS), **legacy},
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


_decode = msgspec.json.Decoder().decode


def _others(fields: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the fields that nobody here reads; null is no field."""
    if fields.keys() <= known:
        return {}
    return {key: value for key, value in fields.items() if key not in known and value is not None}


def _usage(counts: Counts, raw: dict[str, Any]) -> Usage:
    cached = counts.prompt_tokens_details
    details = _others(raw, frozenset({"prompt_tokens", "completion_tokens", "total_tokens"}))
    if isinstance(prompt := details.get("prompt_tokens_details"), dict):
        details["prompt_tokens_details"] = _others(prompt, frozenset({"cached_tokens"}))
    return Usage(
        counts.prompt_tokens or 0,
        counts.completion_tokens or 0,
        (cached.cached_tokens or 0) if cached else 0,
        {key: value for key, value in details.items() if value != {}},
    )


def _tool_calls(calls: Any) -> list[dict[str, Any]]:
    """Return tool call deltas; those of a whole message have no index and get their place."""
    try:
        return [{"index": at, **call} for at, call in enumerate(calls or [])]
    except TypeError as error:
        raise BackendError("the answer's tool_calls are not a list of objects") from error


def _logprobs(
    raw: dict[str, Any] | None,
) -> tuple[list[TokenLogprob], list[TokenLogprob], dict[str, Any]]:
    """Return those of the content, those of a refusal, and the completions API's, untouched."""
    if raw is None:
        return [], [], {}
    if "tokens" in raw:
        return [], [], {"logprobs": _all_finite(raw)}
    try:
        logprobs = msgspec.convert(raw, Logprobs)
        content, refusal = logprobs.content or [], logprobs.refusal or []
        return [*map(_token_logprob, content)], [*map(_token_logprob, refusal)], {}
    except (msgspec.ValidationError, TypeError) as error:
        raise BackendError("the answer's logprobs are not of OpenAI's shape") from error


def _all_finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return LOWEST_LOGPROB
        case dict():
            return {key: _all_finite(item) for key, item in value.items()}
        case list():
            return [_all_finite(item) for item in value]
    return value


def _token_logprob(entry: dict[str, Any]) -> TokenLogprob:
    top = [_finite(other) for other in entry.get("top_logprobs") or []]
    return msgspec.convert({**_finite(entry), "top_logprobs": top}, TokenLogprob)


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    logprob = entry.get("logprob")
    if isinstance(logprob, float) and not math.isfinite(logprob):
        return {**entry, "logprob": LOWEST_LOGPROB}
    return entry
