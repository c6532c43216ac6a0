"""OpenAI's Response object, and how our answers become one.

Source: OpenAI API reference, "The response object".
"""

import time
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, to_builtins

from gateway.answer import Answer
from gateway.backends.base import TokenLogprob, Usage
from gateway.blocks import Block, Kind, blocks_of
from gateway.errors import StrataError
from gateway.wire.responses.items import Item, item_id
from gateway.wire.responses.request import ResponsesRequest

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_RATE_LIMITED = 429
ITEM_KINDS: dict[Kind, str] = {
    "text": "message",
    "refusal": "message",
    "reasoning": "reasoning",
    "tool_call": "function_call",
}


class ResponseOut(Struct, frozen=True, kw_only=True):
    """A response: finished, or as far as it is."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: str
    background: bool = False
    completed_at: int | None = None
    error: dict[str, Any] | None = None
    incomplete_details: dict[str, str] | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, str] = {}
    model: str
    output: Sequence[Item] = ()
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    reasoning: dict[str, Any]
    safety_identifier: str | None = None
    service_tier: str = "default"
    store: bool
    temperature: float = 1.0
    text: dict[str, Any]
    tool_choice: Any = "auto"
    tools: Sequence[dict[str, Any]] = ()
    top_logprobs: int = 0
    top_p: float = 1.0
    truncation: str = "disabled"
    usage: dict[str, Any] | None = None
    user: str | None = None


class Drafts:
    """Makes the Response objects of one request, from the first to the last."""

    def __init__(self, response_id: str, request: ResponsesRequest) -> None:
        self.id = response_id
        self._created_at = int(time.time())
        self._fields = _echo(request)

    def begun(self) -> ResponseOut:
        """Return the response before there is anything of it."""
        return self._of(status="in_progress")

    def failed(self, error: StrataError, output: Sequence[Item]) -> ResponseOut:
        """Return the response that broke."""
        is_limit = error.status == _RATE_LIMITED
        code = "rate_limit_exceeded" if is_limit else "server_error"
        told = {"code": code, "message": error.message}
        return self._of(status="failed", error=told, output=output)

    def ended(self, reason: str, output: Sequence[Item], usage: Usage) -> ResponseOut:
        """Return the whole response; ``reason`` is chat's finish_reason."""
        why = _INCOMPLETE.get(reason)
        return self._of(
            status="completed" if why is None else "incomplete",
            completed_at=int(time.time()) if why is None else None,
            incomplete_details=None if why is None else {"reason": why},
            output=output,
            usage=usage_of(usage),
        )

    def _of(self, **fields: Any) -> ResponseOut:
        return ResponseOut(id=self.id, created_at=self._created_at, **{**self._fields, **fields})


def response_of(drafts: Drafts, answer: Answer) -> ResponseOut:
    """Return a whole answer as a response."""
    blocks, reason = blocks_of(answer) or [Block("text")], answer.choices[0].finish_reason
    output = [
        item_of(block, drafts.id, place, status_of(reason, is_last=place == len(blocks) - 1))
        for place, block in enumerate(blocks)
    ]
    return drafts.ended(reason, output, answer.usage)


def status_of(reason: str, *, is_last: bool) -> str:
    """Return the status of an item: a limit cuts the last one."""
    return "incomplete" if is_last and reason in _INCOMPLETE else "completed"


def item_of(block: Block, response_id: str, place: int, status: str) -> Item:
    """Return one block as an output item."""
    kind = ITEM_KINDS[block.kind]
    head = {"id": item_id(kind, response_id, place), "type": kind}
    match block.kind:
        case "reasoning":
            return {**head, "summary": [], "content": [part_of(block)], "status": status}
        case "tool_call":
            call = {"call_id": block.call_id, "name": block.name, "arguments": block.text}
            return {**head, "status": status, **call}
    return {**head, "status": status, "role": "assistant", "content": [part_of(block)]}


def part_of(block: Block) -> dict[str, Any]:
    """Return one block as a content part."""
    match block.kind:
        case "reasoning":
            return {"type": "reasoning_text", "text": block.text}
        case "refusal":
            return {"type": "refusal", "refusal": block.text}
    return {
        "type": "output_text",
        "text": block.text,
        "annotations": [annotation_of(each) for each in block.annotations],
        "logprobs": logprobs_of(block.logprobs),
    }


def annotation_of(annotation: dict[str, Any]) -> dict[str, Any]:
    """Return one of chat's annotations, which here has its fields beside its type."""
    kind = str(annotation.get("type"))
    inner = annotation.get(kind)
    return {"type": kind, **inner} if isinstance(inner, dict) else annotation


def logprobs_of(logprobs: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    """Return logprobs in this API's shape, in which bytes are always a list."""
    entries: list[dict[str, Any]] = to_builtins(list(logprobs))
    for entry in entries:
        for token in (entry, *entry["top_logprobs"]):
            token["bytes"] = token["bytes"] or []
    return entries


def usage_of(usage: Usage) -> dict[str, Any]:
    """Return a backend's counts in this API's shape, an upstream's further ones beside them."""
    cached = {"cached_tokens": usage.cached_tokens}
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cache_write_tokens": 0,
            **usage.detail("prompt_tokens_details"),
            **cached,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {
            "reasoning_tokens": 0,
            **usage.detail("completion_tokens_details"),
        },
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _echo(request: ResponsesRequest) -> dict[str, Any]:
    """Return what a response repeats of its request."""
    names = (
        "instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls",
        "previous_response_id", "prompt_cache_key", "safety_identifier", "service_tier",
        "temperature", "tool_choice", "top_logprobs", "top_p", "truncation", "user",
    )  # fmt: skip
    said = {name: getattr(request, name) for name in names}
    reasoning, text = request.reasoning, request.text
    return {
        **{name: value for name, value in said.items() if value is not None},
        "model": request.model,
        "store": request.is_stored,
        "tools": [
            {**to_builtins(tool), "strict": bool(tool.strict)} for tool in request.tools or ()
        ],
        "reasoning": {
            "effort": reasoning.effort if reasoning else None,
            "summary": reasoning.summary if reasoning else None,
        },
        "text": {
            "format": _given(text.format) if text and text.format else {"type": "text"},
            **({"verbosity": text.verbosity} if text and text.verbosity else {}),
        },
    }


def _given(struct: Struct) -> dict[str, Any]:
    return {name: value for name, value in to_builtins(struct).items() if value is not None}
