"""The exact key of a request and its scope: what must be equal before answers may be shared.

Pure; knows no store and no model. The encoding is unambiguous: every value carries a type tag and
every string, list and map its length, so no two different requests give the same bytes.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from semantic_layer.chats.conversation import PLACEHOLDER, Turn
from semantic_layer.neutral_fields import without_neutral
from semantic_layer.request import CacheQuery

TRANSPORT_ONLY = frozenset(
    {
        "stream",
        "stream_options",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "metadata",
        "store",
        "service_tier",
    }
)
_VERSIONS = {"exact": "exact-1", "scope": "scope-3"}
_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
_LIMITS = ("max_tokens", "max_completion_tokens")
_SCHEMAS = frozenset({"parameters", "schema", "input_schema", "arguments", "input", "const"})
_REMEMBERED_BYTES = 4096
_pack = msgspec.msgpack.Encoder().encode
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


def exact_key(query: CacheQuery, context: Iterable[str] | None = None) -> str:
    """Return the 256-bit key under which an answer to exactly this request is kept (hex)."""
    who = (query.tenant, query.namespace, query.api, query.model, query.model_fingerprint)
    try:
        packed = _pack((*who, sorted(set(context or ())), query.request))
    except (OverflowError, TypeError, UnicodeEncodeError):  # JSON has more than msgpack
        return _digest("exact", query, context, _fields(query.request))
    if len(packed) > _REMEMBERED_BYTES:
        return _digest("exact", query, context, _fields(query.request))
    return _known_key(packed)


@lru_cache(maxsize=2048)
def _known_key(packed: bytes) -> str:
    """Return the key of what msgpack tells apart at least as finely; repeats are keyed once."""
    tenant, namespace, api, model, fingerprint, context, request = msgspec.msgpack.decode(packed)
    query = CacheQuery(tenant, model, fingerprint, request, api, namespace)
    return _digest("exact", query, context, _fields(request))


def scope_of(query: CacheQuery, turn: Turn, context: Iterable[str] | None = None) -> str:
    """Return the 256-bit scope inside which only the text of ``turn`` varies (hex).

    Sampling options without a seed are folded into two classes, greedy and sampled.
    """
    fields = _fields({**query.request, "messages": turn.frame})
    if "seed" in fields:
        return _digest("scope", query, context, fields)
    sampling = "greedy" if fields.get("temperature", 1) == 0 else "sampled"
    alike = {name: value for name, value in fields.items() if name not in _SAMPLING}
    return _digest("scope", query, context, alike, sampling)


def encode(value: Any) -> bytes:
    """Encode decoded JSON unambiguously; equal numbers give equal bytes, map order never matters.

    Raises:
        TypeError: the value is not JSON.
    """
    out = bytearray()
    _encode(value, out)
    return bytes(out)


def request_fields(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that make the key: those that say something, each in one way.

    Nulls and defaults are dropped, text parts joined, and there is one token limit.
    """
    return _fields(request)


def _digest(
    purpose: str,
    query: CacheQuery,
    context: Iterable[str] | None,
    fields: dict[str, Any],
    sampling: str | None = None,
) -> str:
    parts = [
        f"strata-{_VERSIONS[purpose]}",
        query.tenant,
        query.namespace,
        query.api,
        query.model,
        query.model_fingerprint,
        sorted(set(context or ())),
        fields,
        *([] if sampling is None else [sampling]),
    ]
    return blake2b(encode(parts), digest_size=32).hexdigest()


def _fields(request: Mapping[str, Any]) -> dict[str, Any]:
    fields = {
        name: _plain(value)
        for name, value in request.items()
        if value is not None and name not in TRANSPORT_ONLY and name != "model"
    }
    limits = [fields[name] for name in _LIMITS if name in fields]
    if limits and encode(limits[0]) == encode(limits[-1]):
        fields.pop("max_tokens", None)
        fields["max_completion_tokens"] = limits[0]
    return without_neutral(fields)


def _plain(value: Any) -> Any:
    """Drop nulls outside JSON schemas and join message content that is text parts only."""
    if isinstance(value, dict):
        return {
            name: item if name in _SCHEMAS else _plain(_joined(item) if name == "content" else item)
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _joined(content: Any) -> Any:
    if not isinstance(content, list) or not content or PLACEHOLDER in content:
        return content
    if all(_is_text(part) for part in content):
        return "".join(part["text"] for part in content)
    return content


def _is_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and part.keys() == {"type", "text"}
        and part["type"] in _TEXT_PARTS
        and isinstance(part["text"], str)
    )


def _encode(value: Any, out: bytearray) -> None:
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        out += b"s%d:" % len(data)
        out += data
    elif isinstance(value, dict):
        out += b"m%d:" % len(value)
        for name in sorted(value):
            _encode(name, out)
            _encode(value[name], out)
    elif isinstance(value, list | tuple):
        out += b"l%d:" % len(value)
        for item in value:
            _encode(item, out)
    elif value is None or isinstance(value, bool):
        out += {None: b"n", True: b"t", False: b"f"}[value]
    elif isinstance(value, int | float):
        _encode_number(value, out)
    else:
        raise TypeError(f"not JSON: {type(value).__name__}")


def _encode_number(value: float, out: bytearray) -> None:
    whole = isinstance(value, int) or value.is_integer()
    out += b"i%d;" % int(value) if whole else b"d%s;" % repr(value).encode()
