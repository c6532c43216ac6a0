"""Embeddings of an upstream: its answer read as vectors, its usage shared out to the inputs."""

import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import msgspec
import numpy as np

from gateway.backends.embeddings import Embedding, EmbedWork
from gateway.backends.upstream.dispatch import Dispatch
from gateway.backends.upstream.prefix import Prefix
from gateway.errors import BackendError

PATH = "/embeddings"


class Item(msgspec.Struct):
    """One vector: numbers, or base64 of little-endian float32."""

    embedding: list[float] | str
    index: int


class Counts(msgspec.Struct):
    """Usage as the upstream reports it."""

    prompt_tokens: int | None = None


class EmbeddingsAnswer(msgspec.Struct):
    """An upstream's whole answer."""

    data: list[Item]
    usage: Counts | None = None


async def embed(
    dispatch: Dispatch, name: str, model: str, headers: Mapping[str, str], work: EmbedWork
) -> list[Embedding]:
    """Ask the upstream for all inputs at once; return the vectors in their order.

    Raises:
        UpstreamStatus: the upstream refused the request.
        BackendError: it cannot be reached, or its answer was broken.
    """
    inputs = list(work.inputs)
    body = {**work.fields, "model": model, "input": inputs, "encoding_format": "float"}
    sent = {**headers, "x-request-id": work.request_id}
    async with dispatch.opened(PATH, msgspec.json.encode(body), sent, Prefix()) as exchange:
        if not exchange.response.is_success:
            raise await exchange.refusal(name, sent)
        text = b"".join([chunk async for chunk in exchange.chunks])
    try:
        answer = _decoder.decode(text)
        rows = _rows(answer.data, len(inputs))
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise BackendError(f"upstream {name} sent no embeddings: {error}") from error
    total = (answer.usage.prompt_tokens or 0) if answer.usage else 0
    return [Embedding(*pair) for pair in zip(rows, _shares(total, inputs), strict=True)]


_decoder = msgspec.json.Decoder(EmbeddingsAnswer)


def _rows(items: Sequence[Item], num_inputs: int) -> list[bytes]:
    ordered = sorted(items, key=lambda item: item.index)
    if [item.index for item in ordered] != list(range(num_inputs)):
        raise ValueError(f"{len(items)} vectors for {num_inputs} inputs, or wrongly numbered")
    rows = [_row(item.embedding) for item in ordered]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("vectors of different widths")
    return rows


def _row(given: list[float] | str) -> bytes:
    if isinstance(given, str):
        row = b64decode(given, validate=True)
        if not row or len(row) % 4:
            raise ValueError("a vector in base64 is no float32")
        return row
    row = np.asarray(given, "<f4").tobytes()
    if not row or not all(map(math.isfinite, given)):
        raise ValueError("a vector is empty or not finite")
    return row


def _shares(total: int, inputs: Sequence[str | list[int]]) -> list[int]:
    """Share tokens out by size, none lost: an upstream counts all inputs together.

    Where there are enough, no input is for nothing.
    """
    least = 1 if total >= len(inputs) else 0
    sizes = [len(item.encode()) if isinstance(item, str) else len(item) for item in inputs]
    ends = list(accumulate(sizes))
    rest = total - least * len(inputs)
    marks = [0, *(rest * end // ends[-1] for end in ends)]
    return [least + after - before for before, after in pairwise(marks)]
