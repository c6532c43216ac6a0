"""Bodies of the cache's admin routes, and the way between entries, answers and OpenAI's shapes."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.json import encode as encode_json

from gateway.answer import Answer, Assembler, Choice
from gateway.backends.base import Usage
from gateway.backends.chunks import ChunkReader
from gateway.errors import BackendError, BadRequest
from gateway.wire.completions import is_completion, prompts_of
from gateway.wire.directives import Label, Ttl
from gateway.wire.validation import convert
from semantic_layer import CacheControl


class LookupBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A dry run: the chat request, its headers, and whose cache it is."""

    request: dict[str, Any]
    headers: dict[str, str] | None = None
    tenant: Label | None = None


class EntryRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry to import: a request and its answer, whole (``response``) or as ``text``.

    The request is a chat's or a completion's. An ``exact_only`` answer is never found by likeness.
    """

    request: dict[str, Any]
    response: dict[str, Any] | None = None
    text: str | None = None
    ttl: Ttl | None = None
    tags: list[Label] | None = None
    namespace: Label | None = None
    tenant: Label | None = None
    intent: Label | None = None
    exact_only: bool = False

    def control(self, said: CacheControl) -> CacheControl:
        """Return what the request says to the caches, with this row's own wishes on top."""
        return replace(
            said,
            ttl_s=said.ttl_s if self.ttl is None else self.ttl,
            intent=said.intent if self.intent is None else self.intent,
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


class _ChoiceIn(Struct, frozen=True):
    finish_reason: str
    index: int = 0
    message: dict[str, Any] | None = None
    text: str | None = None


class AnswerIn(Struct, frozen=True):
    """An answer as OpenAI's API gave it: a chat completion or a text completion."""

    choices: Annotated[list[_ChoiceIn], Meta(min_length=1)]
    usage: dict[str, Any] | None = None


def answer_of(row: EntryRow, body: dict[str, Any], api: str) -> Answer:
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
        answer = _answer(row.response, "text" if api == "completions" else "message")
    if not answer.is_storable:
        raise BadRequest(
            "response: only answers that ended by stop, tool_calls or length are kept",
            param="response",
        )
    _check_shape(answer, body, "text" if row.response is None else "response.choices")
    return answer


def _check_shape(answer: Answer, body: dict[str, Any], where: str) -> None:
    """Refuse an answer that would be served as a broken one; no text has no logprobs."""
    num_prompts = len(prompts_of(body["prompt"])) if is_completion(body) else 1
    num_choices = num_prompts * int(body.get("n", 1))
    if [choice.index for choice in answer.choices] != list(range(num_choices)):
        raise BadRequest(
            f"{where}: the request asks for {num_choices} choices, "
            f"numbered from 0; got {len(answer.choices)}",
            param=where,
        )
    if body.get("logprobs") and any(_lacks_logprobs(choice) for choice in answer.choices):
        raise BadRequest(f"{where}: the request asks for logprobs; a choice has none", param=where)


def _lacks_logprobs(choice: Choice) -> bool:
    return bool(choice.text) and not (choice.logprobs or "logprobs" in choice.choice_extra)


def _answer(response: dict[str, Any], holds: Literal["message", "text"]) -> Answer:
    """Read a whole answer as an upstream's is read, so that nothing of it is lost."""
    given = convert(response, AnswerIn, "response")
    for at, choice in enumerate(given.choices):
        if getattr(choice, holds) is None:
            where = f"response.choices[{at}].{holds}"
            raise BadRequest(f"{where}: is required", param=where)
    assembler = Assembler()
    try:
        reader = ChunkReader(0)
        for event in (*reader.read(encode_json(response)), *reader.end()):
            assembler.add(event)
    except BackendError as error:
        raise BadRequest(f"response: {error.message}", param="response") from error
    if assembler.answer is None:
        raise BadRequest("response: is no whole answer", param="response")
    return assembler.answer
