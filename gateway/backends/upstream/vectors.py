"""The vectors in an upstream's answer to an embeddings request. Knows no connection."""

from base64 import b64decode
from typing import Any

import msgspec
import numpy as np

from gateway.backends.embeddings import Embedding
from gateway.errors import BackendError


class Row(msgspec.Struct):
    """One vector: numbers, or base64 of little-endian float32."""

    embedding: list[float] | str
    index: int | None = None


class Counts(msgspec.Struct):
    """Tokens of all inputs together."""

    prompt_tokens: int | None = None


class Vectors(msgspec.Struct):
    """An embeddings answer; other fields of it are the upstream's own affair."""

    data: list[Row]
    usage: Counts | None = None


def read_vectors(text: bytes, num_inputs: int) -> list[Embedding]:
    """Return one vector per input, in the inputs' order; tokens are shared out evenly.

    Raises:
        BackendError: not of OpenAI's shape, or not one finite vector for each input.
    """
    try:
        answer = msgspec.json.decode(text, type=Vectors)
        rows = dict(_placed(at, row) for at, row in enumerate(answer.data))
        vectors = [rows[at] for at in range(num_inputs)]
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, ValueError) as error:
        raise BackendError("the upstream sent something that is no list of vectors") from error
    if len(answer.data) != num_inputs or len({len(vector) for vector in vectors}) > 1:
        raise BackendError("the upstream sent vectors that do not fit the inputs")
    num_tokens = (answer.usage.prompt_tokens if answer.usage else None) or 0
    each, rest = divmod(num_tokens, max(1, num_inputs))
    return [Embedding(vector.tobytes(), each + (at < rest)) for at, vector in enumerate(vectors)]


def _placed(at: int, row: Row) -> tuple[int, Any]:
    if isinstance(row.embedding, str):
        vector = np.frombuffer(b64decode(row.embedding, validate=True), "<f4")
    else:
        vector = np.array(row.embedding, "<f4")
    if not vector.size or not np.isfinite(vector).all():
        raise ValueError("not a finite vector")
    return at if row.index is None else row.index, vector
