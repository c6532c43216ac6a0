"""Bodies of the cache's admin routes, and the way between entries, answers and OpenAI's shapes."""

from dataclasses import replace
from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.answer import Answer, Choice
from gateway.backends.base import TokenLogprob, Usage
from gateway.errors import BadRequest
from gateway.wire.directives import Label, Ttl
from gateway.wire.validation import convert
from semantic_layer import CacheControl


class LookupBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A dry run: the chat request, its headers, and whose cache it is."""

    request: dict[str, Any]
    headers: dict[str, str] | None = None
    tenant: Label | None = None


class EntryRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry to import: a chat request and its answer, whole (``response``) or as ``text``."""

    request: dict[str, Any]
    response: dict[str, Any] | None = None
    text: str | None = None
    ttl: Ttl | None = None
    tags: list[Label] | None = None
    namespace: Label | None = None
    tenant: Label | None = None

    def control(self, said: CacheControl) -> CacheControl:
        """Return what the request says to the caches, with this row's own wishes on top."""
        return replace(
            said,
            ttl_s=said.ttl_s if self.ttl is None else self.ttl,
            tags=tuple(dict.fromkeys((*said.tags, *(self.tags or ())))),
        )


class RowError(Struct, frozen=True):
    """A row that was not imported, by its place in the list."""

    index: int
    message: str
    param: str | None


class ImportResult(Struct, frozen=True):
    """What an import did; ``ids`` are those of the good rows, in order."""

    imported: int
    ids: list[str]
    errors: list[RowError]


class _Details(Struct, frozen=True):
    cached_tokens: int | None = None


class _UsageIn(Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _MessageIn(Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class _LogprobsIn(Struct, frozen=True):
    content: list[TokenLogprob] | None = None


class _ChoiceIn(Struct, frozen=True):
    message: _MessageIn
    finish_reason: str
    index: int = 0
    logprobs: _LogprobsIn | None = None


class ChatCompletionIn(Struct, frozen=True):
    """An answer as OpenAI's API gave it."""

    choices: Annotated[list[_ChoiceIn], Meta(min_length=1)]
    usage: _UsageIn | None = None


def answer_of(row: EntryRow, body: dict[str, Any]) -> Answer:
    """Return the row's answer to its validated request.

    Raises:
        BadRequest: not exactly one of ``response`` and ``text``, an answer that is not stored, or
            one of another shape than the request asks for.
    """
    if (row.response is None) == (row.text is None):
        raise BadRequest("response: give one of response and text", param="response")
    if row.text == "":
        raise BadRequest("text: is empty", param="text")
    if row.response is None:
        answer = Answer([Choice(0, "stop", row.text)], Usage())
    else:
        answer = _answer(convert(row.response, ChatCompletionIn, "response"))
    if not answer.is_storable:
        raise BadRequest(
            "response: only answers that ended by stop, tool_calls or length are kept",
            param="response",
        )
    _check_shape(answer, body, "text" if row.response is None else "response.choices")
    return answer


def _check_shape(answer: Answer, body: dict[str, Any], where: str) -> None:
    """Refuse an answer that would be served as a broken one; no text has no logprobs."""
    num_choices = int(body.get("n", 1))
    if [choice.index for choice in answer.choices] != list(range(num_choices)):
        raise BadRequest(
            f"{where}: the request asks for n={num_choices} choices, "
            f"numbered from 0; got {len(answer.choices)}",
            param=where,
        )
    if body.get("logprobs") and any(c.text and not c.logprobs for c in answer.choices):
        raise BadRequest(f"{where}: the request asks for logprobs; a choice has none", param=where)


def _answer(given: ChatCompletionIn) -> Answer:
    usage = given.usage or _UsageIn()
    details = usage.prompt_tokens_details or _Details()
    return Answer(
        [_choice(choice) for choice in sorted(given.choices, key=lambda choice: choice.index)],
        Usage(usage.prompt_tokens, usage.completion_tokens, details.cached_tokens or 0),
    )


def _choice(given: _ChoiceIn) -> Choice:
    return Choice(
        given.index,
        given.finish_reason,
        text=given.message.content,
        refusal=given.message.refusal,
        tool_calls=given.message.tool_calls or [],
        logprobs=None if given.logprobs is None else given.logprobs.content,
    )
