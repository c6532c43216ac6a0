"""Whether a request and its answer may be kept as they are, by what they hold."""

import asyncio
from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal

from semantic_layer.private_texts import PIECE_CHARS, contact_in, pieces, secret_in
from semantic_layer.request import CacheQuery

Private = Literal["skip", "encrypt", "store"]
_FIELDS = ("messages", "prompt", "input", "system")


async def private_kind(query: CacheQuery, asked: str | None, answer_text: str) -> str | None:
    """Name the first private thing found, None when there is none.

    Secrets and numbers with checksums count anywhere in request and answer. E-mail addresses and
    phone numbers count in the text asked alone: elsewhere they are mostly a company's own. All but
    short texts are read beside the event loop.
    """
    size = query.num_bytes or sum(map(len, _said(query)))
    if max(size, len(answer_text)) <= PIECE_CHARS:
        return _kind_of(query, asked, answer_text)
    return await asyncio.to_thread(_kind_of, query, asked, answer_text)


def _kind_of(query: CacheQuery, asked: str | None, answer_text: str) -> str | None:
    texts = chain(_said(query), [answer_text])
    secrets = (secret_in(piece) for text in texts for piece in pieces(text))
    contacts = (contact_in(piece) for piece in pieces(asked or ""))
    return next((kind for kind in chain(secrets, contacts) if kind is not None), None)


def _said(query: CacheQuery) -> Iterator[str]:
    return chain.from_iterable(_texts(query.request.get(field)) for field in _FIELDS)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
