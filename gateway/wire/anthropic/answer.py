"""Anthropic's Message as Structs, and how our answers become one.

Source: Anthropic API reference, "Create a Message": usage, stop_reason.
"""

import json
from typing import Any, Literal

from msgspec import Struct

from gateway.answer import Answer
from gateway.backends.base import Finish, Usage
from gateway.blocks import Block, blocks_of
from gateway.wire.anthropic.partial_json import partial_object

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


class UsageOut(Struct, frozen=True):
    """Token counts; the input is what was read anew plus what came from KV caches."""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0

    @classmethod
    def of(cls, usage: Usage) -> "UsageOut":
        """Return a backend's counts in Anthropic's division."""
        return cls(
            max(usage.prompt_tokens - usage.cached_tokens, 0),
            usage.completion_tokens,
            cache_read_input_tokens=usage.cached_tokens,
        )


class MessageOut(Struct, frozen=True, kw_only=True):
    """A whole answer, or the head of a stream."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[dict[str, Any]]
    stop_reason: str | None
    stop_sequence: str | None
    usage: UsageOut


def message_of(message_id: str, model: str, answer: Answer) -> MessageOut:
    """Return a whole answer."""
    blocks, choice = blocks_of(answer), answer.choices[0]
    ended = Finish(choice.index, choice.finish_reason, choice.stop)
    is_refused = any(block.kind == "refusal" for block in blocks)
    reason, stop = stop_of(ended, is_refused=is_refused)
    return MessageOut(
        id=message_id,
        model=model,
        content=[_content(block) for block in blocks],
        stop_reason=reason,
        stop_sequence=stop,
        usage=UsageOut.of(answer.usage),
    )


def stop_of(finish: Finish, *, is_refused: bool) -> tuple[str, str | None]:
    """Return stop_reason and stop_sequence."""
    if is_refused:
        return "refusal", None
    if finish.reason == "stop" and finish.stop is not None:
        return "stop_sequence", finish.stop
    return _STOP_REASONS.get(finish.reason, "end_turn"), None


def _content(block: Block) -> dict[str, Any]:
    match block.kind:
        case "reasoning":
            return {"type": "thinking", "thinking": block.text, "signature": ""}
        case "tool_call":
            return {
                "type": "tool_use",
                "id": block.call_id,
                "name": block.name,
                "input": input_of(block.text),
            }
    return {"type": "text", "text": block.text}


def input_of(arguments: str) -> dict[str, Any]:
    """Return a call's arguments as an object; of JSON that a limit has cut, what is certain."""
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        return partial_object(arguments)
    return given if isinstance(given, dict) else {"arguments": given}
