"""Anthropic's Messages request as Structs: the fields we judge; the decoded body keeps the rest.

Source: Anthropic API reference, "Create a Message"; anthropic-sdk-python 2.14, MessageCreateParams.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.wire.directives import StrataField
from gateway.wire.validation import Short, Text, wrong

Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Block(Struct, frozen=True):
    """A content block; what each type needs is judged where it is translated."""

    type: Text


class MessageIn(Struct, frozen=True):
    """One turn."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class SystemBlock(Struct, frozen=True):
    """A part of the system prompt."""

    type: Literal["text"]
    text: str


class ToolIn(Struct, frozen=True):
    """A tool; one without a type, or of type ``custom``, is the caller's own function."""

    name: Text
    type: Short | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None


class ToolChoiceIn(Struct, frozen=True):
    """Whether and which tools must be used."""

    type: Literal["auto", "any", "tool", "none"]
    name: Text | None = None
    disable_parallel_tool_use: bool | None = None


class MetadataIn(Struct, frozen=True):
    """Who the end user is, opaquely."""

    user_id: Short | None = None


class ThinkingIn(Struct, frozen=True):
    """Extended thinking."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: Annotated[int, Meta(ge=1024)] | None = None


class FormatIn(Struct, frozen=True):
    """The shape an answer must have."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfigIn(Struct, frozen=True):
    """Effort and shape of the answer."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: FormatIn | None = None


class PromptIn(Struct, frozen=True):
    """What a prompt is made of: all that counting tokens needs; null means absent."""

    model: Text
    messages: Annotated[list[MessageIn], Meta(min_length=1)]
    system: str | list[SystemBlock] | None = None
    tools: list[ToolIn] | None = None
    tool_choice: ToolChoiceIn | None = None
    thinking: ThinkingIn | None = None
    output_config: OutputConfigIn | None = None


class MessagesRequest(PromptIn, frozen=True, kw_only=True):
    """The body of ``POST /v1/messages``."""

    max_tokens: Count
    stream: bool | None = None
    temperature: Share | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Meta(ge=0)] | None = None
    stop_sequences: list[Text] | None = None
    metadata: MetadataIn | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    strata: StrataField | None = None


def check_messages(request: PromptIn) -> None:
    """Judge what spans several fields.

    Raises:
        BadRequest: names the field.
    """
    for at, message in enumerate(request.messages):
        if message.role == "user" and not message.content:
            raise wrong(f"messages[{at}].content", "must not be empty")
    _check_tools(request)
    thinking = request.thinking
    if thinking is not None and thinking.type == "enabled":
        if thinking.budget_tokens is None:
            raise wrong("thinking.budget_tokens", "is required")
        if isinstance(request, MessagesRequest) and thinking.budget_tokens >= request.max_tokens:
            raise wrong("thinking.budget_tokens", "must be less than max_tokens")


def _check_tools(request: PromptIn) -> None:
    for at, tool in enumerate(request.tools or ()):
        if tool.type not in (None, "custom"):
            raise wrong(f"tools[{at}].type", f"the tool {tool.type!r} is not one we can run")
        if tool.input_schema is None:
            raise wrong(f"tools[{at}].input_schema", "is required")
    choice = request.tool_choice
    if choice is not None and choice.type in ("any", "tool") and not request.tools:
        raise wrong("tool_choice", "only allowed when tools are given")
    if choice is not None and choice.type == "tool" and choice.name is None:
        raise wrong("tool_choice.name", "is required")
