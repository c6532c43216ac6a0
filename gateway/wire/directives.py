"""What a caller tells the caches: the ``x-strata-*`` headers, Cache-Control, the ``strata`` field.

Where a header and the field say the same thing the header wins; tags of both are joined.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from gateway.errors import BadRequest
from semantic_layer import CacheControl

T = TypeVar("T")
U = TypeVar("U")

MAX_TTL_S = 10 * 366 * 86_400
MAX_TAGS = 64
MAX_DOCUMENTS = 1000

CONTROL_HEADERS = frozenset(
    {
        "cache-control",
        "x-strata-ttl",
        "x-strata-namespace",
        "x-strata-tags",
        "x-strata-threshold",
        "x-strata-intent",
        "x-strata-semantic",
    }
)

_NAME = r"^[^\x00-\x1f\x7f,]{1,128}$"
_SECONDS = re.compile(r"[0-9]{1,10}")

Label = Annotated[str, Meta(pattern=_NAME)]
Ttl = Annotated[float, Meta(gt=0, le=MAX_TTL_S)]


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """A retrieved text that the answer rests on; it is written before the question."""

    id: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,512}$")]
    text: Annotated[str, Meta(min_length=1)]


class StrataField(Struct, frozen=True, forbid_unknown_fields=True):
    """The optional ``strata`` object of a body; no model ever sees it."""

    query: Annotated[str, Meta(min_length=1)] | None = None
    context: list[str] | None = None
    tags: Annotated[list[Label], Meta(max_length=MAX_TAGS)] | None = None
    namespace: Label | None = None
    ttl: Ttl | None = None
    documents: Annotated[list[Document], Meta(max_length=MAX_DOCUMENTS)] | None = None


@dataclass(frozen=True, slots=True)
class Directives:
    """All that one request tells the caches."""

    control: CacheControl
    namespace: str = ""


_NOTHING_SAID = Directives(CacheControl())


def read_directives(
    headers: Mapping[str, str], field: StrataField | None, known_intents: Collection[str]
) -> Directives:
    """Return what the headers (lower-case names) and the body field say.

    Raises:
        BadRequest: a header is malformed, or names an unknown intent; ``param`` is the header.
    """
    if field is None and CONTROL_HEADERS.isdisjoint(headers):
        return _NOTHING_SAID
    field = field or StrataField()
    cache = _cache_control(headers.get("cache-control", ""))
    control = CacheControl(
        no_cache="no-cache" in cache,
        no_store="no-store" in cache,
        only_if_cached="only-if-cached" in cache,
        max_age_s=_max_age(cache),
        ttl_s=_read(headers, "x-strata-ttl", _ttl, field.ttl),
        tags=_joined(_read(headers, "x-strata-tags", _tags, ()), field.tags or ()),
        threshold=_read(headers, "x-strata-threshold", _share, None),
        intent=_read(headers, "x-strata-intent", lambda value: _one_of(value, known_intents), None),
        semantic=_read(headers, "x-strata-semantic", _switch, True),
        query_text=field.query,
        context=None if field.context is None else tuple(field.context),
    )
    return Directives(control, _read(headers, "x-strata-namespace", _name, field.namespace) or "")


def _read(headers: Mapping[str, str], name: str, parse: Callable[[str], T], default: U) -> T | U:
    value = headers.get(name)
    if value is None:
        return default
    try:
        return parse(value.strip())
    except ValueError as error:
        raise BadRequest(f"header {name}: {error}", param=name) from None


def _cache_control(value: str) -> dict[str, str]:
    """Split Cache-Control into directives; unknown ones are ignored later (RFC 9111, 5.2.3)."""
    directives: dict[str, str] = {}
    for part in value.split(","):
        name, _, argument = part.partition("=")
        directives.setdefault(name.strip().lower(), argument.strip().strip('"'))
    return directives


def _max_age(directives: Mapping[str, str]) -> float | None:
    return _read(
        {"cache-control": directives["max-age"]} if "max-age" in directives else {},
        "cache-control",
        lambda value: float(_whole_seconds(value, "max-age takes")),
        None,
    )


def _whole_seconds(value: str, what: str) -> int:
    if not _SECONDS.fullmatch(value):
        raise ValueError(f"{what} a whole number of seconds, got {value!r}")
    return int(value)


def _ttl(value: str) -> float:
    seconds = _whole_seconds(value, "expected")
    if not 0 < seconds <= MAX_TTL_S:
        raise ValueError(f"expected 1 to {MAX_TTL_S} seconds, got {value!r}")
    return float(seconds)


def _share(value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"expected a number from 0 to 1, got {value!r}")
    return share


def _switch(value: str) -> bool:
    return _one_of(value.lower(), ("on", "off")) == "on"


def _one_of(value: str, known: Collection[str]) -> str:
    if value not in known:
        raise ValueError(f"{value!r} is not one of {', '.join(sorted(known))}")
    return value


def _name(value: str) -> str:
    if not re.match(_NAME, value):
        raise ValueError("expected 1 to 128 characters, without commas and control characters")
    return value


def _tags(value: str) -> tuple[str, ...]:
    return tuple(_name(tag) for part in value.split(",") if (tag := part.strip()))


def _joined(first: tuple[str, ...], more: Collection[str]) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys((*first, *more)))
    if len(tags) > MAX_TAGS:
        raise BadRequest(f"header x-strata-tags: more than {MAX_TAGS} tags", param="x-strata-tags")
    return tags
