"""OpenAI's Responses request as Structs: the fields we judge; the decoded body keeps the rest.

Source: OpenAI API reference, "Create a model response"; openai-python 3.57, ResponseCreateParams.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.wire.directives import StrataField
from gateway.wire.validation import Short, Text, wrong

Count = Annotated[int, Meta(ge=1)]

LOGPROBS = "message.output_text.logprobs"
REFUSED = ("conversation", "prompt", "moderation")


class ToolIn(Struct, frozen=True):
    """A tool; functions are the caller's own, all others are the provider's."""

    type: Text
    name: Text | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FormatIn(Struct, frozen=True):
    """The shape an answer must have."""

    type: Literal["text", "json_object", "json_schema"]
    name: Text | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class TextIn(Struct, frozen=True):
    """How the answer's text is to be."""

    format: FormatIn | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningIn(Struct, frozen=True):
    """How much to reason."""

    effort: Short | None = None
    summary: Short | None = None
    generate_summary: Short | None = None


class ResponsesRequest(Struct, frozen=True, kw_only=True):
    """The body of ``POST /v1/responses``; null means absent."""

    model: Text
    input: str | list[dict[str, Any]] | None = None
    instructions: str | None = None
    previous_response_id: Text | None = None
    stream: bool | None = None
    store: bool | None = None
    max_output_tokens: Count | None = None
    max_tool_calls: Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: list[ToolIn] | None = None
    tool_choice: Short | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextIn | None = None
    reasoning: ReasoningIn | None = None
    include: list[Short] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    metadata: dict[Short, Short] | None = None
    background: bool | None = None
    user: Short | None = None
    safety_identifier: Short | None = None
    prompt_cache_key: Short | None = None
    service_tier: Short | None = None
    strata: StrataField | None = None

    @property
    def wants_logprobs(self) -> bool:
        """Whether the answer's text comes with logprobs."""
        return bool(self.top_logprobs) or LOGPROBS in (self.include or ())

    @property
    def is_stored(self) -> bool:
        """Whether the response can be named by a later request; so it is by default."""
        return self.store is not False


def check_responses(request: ResponsesRequest, tree: dict[str, Any]) -> None:
    """Judge what spans several fields, and what we cannot do.

    Raises:
        BadRequest: names the field.
    """
    if not request.input and request.input != "" and request.previous_response_id is None:
        raise wrong("input", "expected text or a list of items, got nothing")
    for name in REFUSED:
        if tree.get(name) is not None:
            raise wrong(name, "is not supported here")
    if request.background:
        raise wrong("background", "is not supported here; stream instead")
    for at, tool in enumerate(request.tools or ()):
        if tool.type != "function":
            raise wrong(f"tools[{at}].type", f"the tool {tool.type[:40]!r} is not one we can run")
        if tool.name is None:
            raise wrong(f"tools[{at}].name", "is required")
    if request.tool_choice not in (None, "none", "auto") and not request.tools:
        raise wrong("tool_choice", "only allowed when tools are given")
    shape = request.text and request.text.format
    if shape and shape.type == "json_schema" and (shape.name is None or shape.schema is None):
        missing = "name" if shape.name is None else "schema"
        raise wrong(f"text.format.{missing}", "is required")
