"""OpenAI's legacy completions as Structs: what we check of a request, and every field we answer.

Source: OpenAI API reference, "Create completion", "The completion object".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.wire.directives import StrataField
from gateway.wire.openai import Bias, Penalty, StreamOptions, UsageBody
from gateway.wire.openai import TokenId as BiasedToken
from gateway.wire.validation import Short, Text, convert, decode_object, wrong

MAX_PROMPTS = 2048

TokenId = Annotated[int, Meta(ge=0)]
Prompt = str | list[int]


class CompletionRequest(Struct, frozen=True):
    """The body of ``POST /v1/completions``; null means absent.

    ``prompt`` is a text, a list of texts, a list of token ids, or a list of such lists.
    """

    model: Text
    prompt: str | list[str | TokenId | list[TokenId]]
    best_of: Annotated[int, Meta(ge=1, le=20)] | None = None
    echo: bool | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[BiasedToken, Bias] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=5)] | None = None
    max_tokens: Annotated[int, Meta(ge=0)] | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    presence_penalty: Penalty | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: Text | Annotated[list[Text], Meta(max_length=4)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    suffix: str | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    user: Short | None = None
    strata: StrataField | None = None

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with a usage chunk."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


@dataclass(frozen=True, slots=True)
class DecodedCompletion:
    """A validated request; ``body`` is its JSON, unknown fields kept, ``strata`` and nulls not."""

    request: CompletionRequest
    body: dict[str, Any]


def decode_completion(data: bytes) -> DecodedCompletion:
    """Validate the body of a completions request.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    return check_completion(decode_object(data))


def check_completion(tree: dict[str, Any], where: str = "") -> DecodedCompletion:
    """Validate a completions request that is already decoded JSON.

    Raises:
        BadRequest: anything is wrong with it; names the field, ``where`` before it.
    """
    request = convert(tree, CompletionRequest, where)
    dot = f"{where}." if where else ""
    _check_together(request, dot)
    _check_prompt(request.prompt, f"{dot}prompt")
    body = {name: value for name, value in tree.items() if value is not None and name != "strata"}
    return DecodedCompletion(request, body)


def is_completion(tree: Mapping[str, Any]) -> bool:
    """Say whether a request is one of this API, not of chat."""
    return "prompt" in tree and "messages" not in tree


def prompts_of(prompt: str | list[Any]) -> list[Prompt]:
    """Return the prompts of a validated request, each a text or a list of token ids."""
    if isinstance(prompt, str) or isinstance(prompt[0], int):
        return [prompt]
    return prompt


def name_of(prompt: str | list[Any], at: int) -> str:
    """Return how a client names one of its prompts."""
    return "prompt" if prompts_of(prompt)[0] is prompt else f"prompt[{at}]"


def _check_together(request: CompletionRequest, dot: str) -> None:
    num_choices = request.n or 1
    if request.stream_options is not None and not request.stream:
        raise wrong(f"{dot}stream_options", "only allowed when stream is true")
    if request.best_of is not None and request.best_of < num_choices:
        raise wrong(f"{dot}best_of", f"is {request.best_of}, less than n, which is {num_choices}")
    if request.stream and (request.best_of or num_choices) > num_choices:
        raise wrong(f"{dot}best_of", "the best of several cannot be streamed")


def _check_prompt(prompt: str | list[Any], where: str) -> None:
    if not isinstance(prompt, list):
        return
    if not prompt:
        raise wrong(where, "is empty")
    kinds = {type(item) for item in prompt}
    if len(kinds) > 1:
        raise wrong(where, "texts and token ids cannot be mixed")
    if kinds != {int} and len(prompt) > MAX_PROMPTS:
        raise wrong(where, f"{len(prompt)} prompts, at most {MAX_PROMPTS} in one request")
    for at, item in enumerate(prompt):
        if isinstance(item, list) and not item:
            raise wrong(f"{where}[{at}]", "is empty")


class LegacyLogprobs(Struct, frozen=True):
    """One entry per token; ``text_offset`` counts characters of the choice's ``text``.

    The first token of an echoed prompt follows nothing, so its values are null.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class TextChoice(Struct, frozen=True):
    """One choice, whole or a piece of it."""

    index: int
    text: str
    logprobs: LegacyLogprobs | None = None
    finish_reason: str | None = None


class TextCompletion(Struct, frozen=True, kw_only=True):
    """A whole answer, or one event of a stream."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoice]
    usage: UsageBody | UnsetType | None = UNSET
