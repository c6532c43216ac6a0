"""OpenAI's chat completions as Structs: what we check of a request, and every field we answer.

A request Struct holds the fields we judge; the decoded body beside it keeps all the others.
Source: OpenAI API reference, "Create chat completion", "The chat completion chunk object".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.backends.base import TokenLogprob, Usage
from gateway.errors import BadRequest
from gateway.wire.directives import StrataField
from gateway.wire.validation import Short, Text, convert, decode_object, wrong

Count = Annotated[int, Meta(ge=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Bias = Annotated[float, Meta(ge=-100, le=100)]
TokenId = Annotated[str, Meta(pattern=r"^[0-9]+$")]


class ContentPart(Struct, frozen=True):
    """One part of a message; kinds other than text are judged by the backend."""

    type: Text
    text: str | None = None


class FunctionCall(Struct, frozen=True):
    """A function the assistant called; ``arguments`` is JSON in a string."""

    name: Short
    arguments: str


class ToolCall(Struct, frozen=True):
    """One call in an assistant's turn."""

    id: Short
    type: Short = "function"
    function: FunctionCall | None = None


class Message(Struct, frozen=True):
    """One turn of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Meta(min_length=1)] | None = None
    name: Short | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: Short | None = None
    refusal: str | None = None
    function_call: dict[str, Any] | None = None
    audio: dict[str, Any] | None = None


class StreamOptions(Struct, frozen=True):
    """Options of a stream."""

    include_usage: bool | None = None


class FunctionTool(Struct, frozen=True):
    """A function the model may call."""

    name: Text
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Struct, frozen=True):
    """A tool; kinds other than function are judged by the backend."""

    type: Text
    function: FunctionTool | None = None


class ResponseFormat(Struct, frozen=True):
    """The shape an answer must have."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: dict[str, Any] | None = None


class ChatRequest(Struct, frozen=True):
    """The body of ``POST /v1/chat/completions``; null means absent."""

    model: Text
    messages: Annotated[list[Message], Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    reasoning_effort: Short | None = None
    stop: Text | Annotated[list[Text], Meta(max_length=4)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[TokenId, Bias] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: list[Tool] | None = None
    tool_choice: Short | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    user: Short | None = None
    metadata: dict[Short, Short] | None = None
    store: bool | None = None
    service_tier: Short | None = None
    prompt_cache_key: Short | None = None
    safety_identifier: Short | None = None
    strata: StrataField | None = None

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with a usage chunk."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


@dataclass(frozen=True, slots=True)
class DecodedChat:
    """A validated request; ``body`` is its JSON, unknown fields kept, ``strata`` and nulls not."""

    request: ChatRequest
    body: dict[str, Any]


def decode_chat(data: bytes) -> DecodedChat:
    """Validate the body of a chat request.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    return check_chat(decode_object(data))


def check_chat(tree: dict[str, Any], where: str = "") -> DecodedChat:
    """Validate a chat request that is already decoded JSON.

    Raises:
        BadRequest: anything is wrong with it; names the field, ``where`` before it.
    """
    request = convert(tree, ChatRequest, where)
    try:
        _check_together(request)
        for at, message in enumerate(request.messages):
            _check_message(message, f"messages[{at}]")
        _check_tool_answers(request.messages)
    except BadRequest as error:
        if where:
            raise BadRequest(f"{where}.{error.message}", param=f"{where}.{error.param}") from None
        raise
    body = {name: value for name, value in tree.items() if value is not None and name != "strata"}
    return DecodedChat(request, body)


def _check_together(request: ChatRequest) -> None:
    if request.stream_options is not None and not request.stream:
        raise wrong("stream_options", "only allowed when stream is true")
    if request.top_logprobs is not None and not request.logprobs:
        raise wrong("top_logprobs", "only allowed when logprobs is true")
    if request.tool_choice not in (None, "none", "auto") and not request.tools:
        raise wrong("tool_choice", "only allowed when tools are given")
    limits = {request.max_tokens, request.max_completion_tokens} - {None}
    if len(limits) > 1:
        raise wrong("max_tokens", "differs from max_completion_tokens; give one of them")
    for at, tool in enumerate(request.tools or ()):
        if tool.type == "function" and tool.function is None:
            raise wrong(f"tools[{at}].function", "is required")


def _check_tool_answers(messages: Sequence[Message]) -> None:
    """See that each tool message answers a call that was made before it."""
    called: set[str] = set()
    for at, message in enumerate(messages):
        called |= {call.id for call in message.tool_calls or ()}
        if message.role == "tool" and message.tool_call_id not in called:
            raise wrong(
                f"messages[{at}].tool_call_id", "answers no tool call of an earlier message"
            )


def _check_message(message: Message, where: str) -> None:
    if message.role == "user" and message.content in ("", []):
        raise wrong(f"{where}.content", "expected text or parts, got nothing")
    if message.content is None and not _may_be_empty(message):
        raise wrong(f"{where}.content", "expected text or a list of parts, got nothing")
    if message.role == "tool" and not message.tool_call_id:
        raise wrong(f"{where}.tool_call_id", "is required in a tool message")
    if isinstance(message.content, list):
        for at, part in enumerate(message.content):
            if part.type == "text" and part.text is None:
                raise wrong(f"{where}.content[{at}].text", "is required in a text part")
    for at, call in enumerate(message.tool_calls or ()):
        if call.type == "function" and call.function is None:
            raise wrong(f"{where}.tool_calls[{at}].function", "is required")


def _may_be_empty(message: Message) -> bool:
    instead = message.tool_calls or message.function_call or message.audio
    return message.role == "assistant" and bool(instead or message.refusal is not None)


class PromptTokensDetails(Struct, frozen=True):
    """What of the prompt was served from KV caches."""

    cached_tokens: int


class UsageBody(Struct, frozen=True):
    """Token counts of a whole request; an upstream's further counts stand beside them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails

    @classmethod
    def of(cls, usage: Usage) -> Any:
        """Return what encodes as a backend's counts in OpenAI's shape."""
        body = cls(
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.prompt_tokens + usage.completion_tokens,
            PromptTokensDetails(usage.cached_tokens),
        )
        if not usage.details:
            return body
        own = msgspec.to_builtins(body)
        prompt = {**usage.detail("prompt_tokens_details"), **own["prompt_tokens_details"]}
        return {**usage.details, **own, "prompt_tokens_details": prompt}


class Logprobs(Struct, frozen=True):
    """One entry per emitted token."""

    content: Sequence[TokenLogprob] | None
    refusal: Sequence[TokenLogprob] | None = None


class AssistantMessage(Struct, frozen=True):
    """The answer's message."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    tool_calls: list[dict[str, Any]] | UnsetType = UNSET


class ChatChoice(Struct, frozen=True):
    """One choice of a whole answer."""

    index: int
    message: AssistantMessage
    logprobs: Logprobs | None
    finish_reason: str


class ChatCompletion(Struct, frozen=True, kw_only=True):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: UsageBody


class ChunkDelta(Struct, frozen=True):
    """What a chunk adds to its choice."""

    role: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    refusal: str | UnsetType | None = UNSET
    tool_calls: list[dict[str, Any]] | UnsetType = UNSET


class ChunkChoice(Struct, frozen=True):
    """The one choice a chunk belongs to."""

    index: int
    delta: ChunkDelta
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class ChatCompletionChunk(Struct, frozen=True, kw_only=True):
    """One event of a stream; ``usage`` stands in it only where usage was asked for."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: UsageBody | UnsetType | None = UNSET


def with_extra(struct: Struct, extra: dict[str, Any]) -> Any:
    """Return what encodes as the Struct with fields we relay unread; our own fields win."""
    return {**extra, **msgspec.to_builtins(struct)}
