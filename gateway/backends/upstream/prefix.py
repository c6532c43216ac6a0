"""The leading text of a request, as a chain of keys: equal keys mean equal prefixes. Pure.

What is rendered is what chat templates put first: tools, then the messages in order. A key stands
at the end of every message and of every `BLOCK_BYTES` within, so that both a conversation that
goes on and a long shared document have keys in common with what was sent before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

BLOCK_BYTES = 512
MAX_KEYS = 512
KEY_BYTES = 12

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Prefix:
    """The keys of a request's prefixes, shortest first; ``lengths`` are their bytes of text.

    ``hint`` is the client's own word for what belongs together, if it gave one.
    """

    keys: tuple[bytes, ...] = ()
    lengths: tuple[int, ...] = ()
    hint: bytes | None = None


def prefix_of(body: Mapping[str, Any]) -> Prefix:
    """Return the prefix keys of a request body in OpenAI's shape."""
    state, length = str(body.get("model")).encode(), 0
    keys: list[bytes] = []
    lengths: list[int] = []
    for block in _blocks(body):
        state = blake2b(state + block, digest_size=KEY_BYTES).digest()
        length += len(block)
        keys.append(state)
        lengths.append(length)
        if len(keys) == MAX_KEYS:
            break
    hint = body.get("prompt_cache_key")
    return Prefix(tuple(keys), tuple(lengths), hint.encode() if isinstance(hint, str) else None)


def _blocks(body: Mapping[str, Any]) -> Iterator[bytes]:
    for piece in _pieces(body):
        for start in range(0, len(piece), BLOCK_BYTES):
            yield piece[start : start + BLOCK_BYTES]


def _pieces(body: Mapping[str, Any]) -> Iterator[bytes]:
    if tools := body.get("tools"):
        yield b"tools\n" + _encode(tools)
    for message in body.get("messages") or ():
        yield _message(message)
    match body.get("prompt"):
        case str() as prompt:
            yield prompt.encode("utf-8", "surrogatepass")
        case list() as prompts:
            yield _encode(prompts)


def _message(message: Any) -> bytes:
    """Render one message; what is no text of it is rendered as JSON."""
    if not isinstance(message, Mapping):
        return _encode(message)
    content = message.get("content")
    text = content if isinstance(content, str) else "".join(_texts(content))
    calls = message.get("tool_calls")
    return b"\n%b\n%b%b" % (
        str(message.get("role")).encode("utf-8", "surrogatepass"),
        text.encode("utf-8", "surrogatepass"),
        _encode(calls) if calls else b"",
    )


def _texts(content: Any) -> Iterator[str]:
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]
        else:
            yield _encode(part).decode()
