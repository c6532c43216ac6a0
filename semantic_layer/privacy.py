"""Whether a request and its answer may be kept as they are, by what they hold."""

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

from semantic_layer.private_texts import contact_in, pieces, secret_in
from semantic_layer.request import CacheQuery

Private = Literal["skip", "encrypt", "store"]
_SAID = ("messages", "prompt", "input", "system")


async def private_kind(query: CacheQuery, asked: str | None, answer_text: str) -> str | None:
    """Name the first private thing found, None when there is none.

    Secrets and numbers with checksums count anywhere in request and answer. E-mail addresses and
    phone numbers count in the text asked alone: elsewhere they are mostly a company's own. Other
    tasks run between pieces.
    """
    said = [text for field in _SAID for text in _texts(query.request.get(field))]
    for text in (*said, answer_text):
        for piece in pieces(text):
            kind = secret_in(piece)
            if kind is not None:
                return kind
            await asyncio.sleep(0)
    for piece in pieces(asked or ""):
        kind = contact_in(piece)
        if kind is not None:
            return kind
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
