"""OpenAI's embeddings as Structs.

Source: OpenAI API reference, "Create embeddings": 2,048 inputs at most, none of them empty.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.errors import BadRequest
from gateway.wire.directives import StrataField
from gateway.wire.openai import Count
from gateway.wire.validation import Short, Text, convert, decode_object

MAX_INPUTS = 2048
NOT_THE_MODELS = frozenset({"model", "input", "encoding_format", "strata"})

TokenId = Annotated[int, Meta(ge=0)]
Input = str | list[int]


class EmbeddingsRequest(Struct, frozen=True):
    """The body of ``POST /v1/embeddings``; null means absent.

    ``input`` is a text, a list of texts, a list of token ids, or a list of such lists.
    """

    model: Text
    input: str | list[str | TokenId | list[TokenId]]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Count | None = None
    user: Short | None = None
    strata: StrataField | None = None


@dataclass(frozen=True, slots=True)
class DecodedEmbeddings:
    """A validated request: what to embed, and the fields that say how, unknown ones kept."""

    request: EmbeddingsRequest
    inputs: tuple[Input, ...]
    fields: dict[str, Any]

    def param_of(self, at: int) -> str:
        """Return how a client names one of its inputs."""
        is_list = isinstance(self.request.input, list) and self.request.input is not self.inputs[0]
        return f"input[{at}]" if is_list else "input"


def decode_embeddings(data: bytes) -> DecodedEmbeddings:
    """Validate the body of an embeddings request.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    tree = decode_object(data)
    request = convert(tree, EmbeddingsRequest)
    fields = {
        name: value
        for name, value in tree.items()
        if value is not None and name not in NOT_THE_MODELS
    }
    return DecodedEmbeddings(request, _inputs(request.input), fields)


def _inputs(given: str | list[Any]) -> tuple[Input, ...]:
    if isinstance(given, str):
        _refuse_empty(given, "input")
        return (given,)
    _refuse_empty(given, "input")
    kinds = {type(item) for item in given}
    if len(kinds) > 1:
        raise BadRequest("input: texts and token ids cannot be mixed", param="input")
    if kinds == {int}:
        return (given,)
    if len(given) > MAX_INPUTS:
        raise BadRequest(
            f"input: {len(given)} inputs, at most {MAX_INPUTS} in one request", param="input"
        )
    for at, item in enumerate(given):
        _refuse_empty(item, f"input[{at}]")
        if isinstance(item, list) and not all(isinstance(part, int) for part in item):
            raise BadRequest(f"input[{at}]: expected token ids", param=f"input[{at}]")
    return tuple(given)


def _refuse_empty(value: str | list[Any], param: str) -> None:
    if not value:
        raise BadRequest(f"{param}: is empty", param=param)


class EmbeddingItem(Struct, frozen=True, kw_only=True):
    """One vector: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(Struct, frozen=True):
    """Token counts of all inputs."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(Struct, frozen=True, kw_only=True):
    """All vectors, in the order of the inputs."""

    object: Literal["list"] = "list"
    data: list[EmbeddingItem]
    model: str
    usage: EmbeddingsUsage
