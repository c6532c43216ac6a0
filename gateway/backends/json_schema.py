"""JSON Schemas from requests, made ready for the local engine. Pure.

The engine refuses what it cannot enforce, by name. What it would only seem to enforce, or take
hours over, is found here. Objects that list their properties are closed where the schema leaves
them open: what is generated is still valid, and a small model comes to an end.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from gateway.errors import BadRequest

MAX_SCHEMA_BYTES = 256 * 1024
MAX_MULTIPLE = 10_000  # a compiled multipleOf has that many states: 0.03 s; 20 million take minutes
_PLAIN_FORMATS = frozenset({"binary", "directory-path", "file-path", "password", "path"})
_ONE = (
    *("items", "additionalProperties", "additionalItems", "not", "contains", "propertyNames"),
    *("if", "then", "else", "unevaluatedItems", "unevaluatedProperties"),
)
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")

_COMPOSED = frozenset({"allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "patternProperties"})
_BESIDE = frozenset({"properties", "required", "additionalProperties"})
_WRITTEN = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

Schema = dict[str, Any]


def strict_schema(schema: Any, field: str) -> str:
    """Return a schema as JSON, every keyword of which will be enforced.

    Raises:
        BadRequest: the schema is malformed, too large, or has what cannot be enforced.
    """
    prepared = _prepare(schema, field)
    total = 1
    for part in _subschemas(prepared):
        for keyword, fault in _faults(part):
            raise BadRequest(f"{field}: {keyword} {fault}", param=field, code="unsupported_schema")
        if any(part.get("format") == plain for plain in _PLAIN_FORMATS):
            del part["format"]
        total *= _mantissa(part.get("multipleOf", 1))
        if total > MAX_MULTIPLE:
            raise BadRequest(
                f"{field}: multipleOf is too fine or too large",
                param=field,
                code="unsupported_schema",
            )
    return _written(prepared, lenient=False)


def lenient_schema(schema: Any, field: str) -> str:
    """Return a schema as JSON, of which only the keywords that can be enforced will be.

    Raises:
        BadRequest: the schema is malformed or too large.
    """
    prepared = _prepare(schema, field)
    for part in _subschemas(prepared):
        for keyword, _ in list(_faults(part)):
            del part[keyword]
        if _mantissa(part.get("multipleOf", 1)) > 1:
            del part["multipleOf"]
    return _written(prepared, lenient=True)


def _prepare(schema: Any, field: str) -> Schema:
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise BadRequest(f"{field} must be a JSON Schema, which is an object", param=field)
    encoded = msgspec.json.encode(schema)
    if len(encoded) > MAX_SCHEMA_BYTES:
        raise BadRequest(f"{field} is larger than {MAX_SCHEMA_BYTES} bytes", param=field)
    copy: Schema = msgspec.json.decode(encoded)
    copy.pop("x-guidance", None)
    return copy


def _written(schema: Schema, *, lenient: bool) -> str:
    _close(schema)
    schema["x-guidance"] = {**_WRITTEN, "lenient": lenient}
    return msgspec.json.encode(schema).decode()


def _close(schema: Schema) -> None:
    """Forbid properties that are not listed, unless parts of the schema are to be merged."""
    parts = list(_subschemas(schema))
    if any(
        "allOf" in part or (_COMPOSED & part.keys() and _BESIDE & part.keys()) for part in parts
    ):
        return
    for part in parts:
        properties, required = part.get("properties"), part.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            continue
        least = part.get("minProperties")
        enough = not isinstance(least, int) or least <= len(properties)
        if enough and all(name in list(properties) for name in required):
            part.setdefault("additionalProperties", False)


def _subschemas(schema: Schema) -> Iterator[Schema]:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        yield part
        inner = [part.get(keyword) for keyword in _ONE]
        for keyword in _LISTED:
            inner += part[keyword] if isinstance(part.get(keyword), list) else []
        for keyword in _NAMED:
            inner += part[keyword].values() if isinstance(part.get(keyword), dict) else []
        waiting += [one for one in inner if isinstance(one, dict)]


def _faults(part: Schema) -> Iterator[tuple[str, str]]:
    """Name the keywords of one subschema that would be dropped in silence, and what is wrong."""
    if isinstance(part.get("items"), list):
        yield "items", "must be one schema; a list of schemas is called prefixItems"
    for keyword in ("additionalItems", "$recursiveRef"):
        if keyword in part:
            yield keyword, "is not supported"
    for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
        if isinstance(part.get(keyword), bool):
            yield keyword, "must be a number"
    required = part.get("required")
    num_required = len(required) if isinstance(required, list) else 0
    if isinstance(least := part.get("minProperties"), int) and least > max(1, num_required):
        yield "minProperties", "is supported up to 1, or to the number of required properties"


def _mantissa(multiple: Any) -> int:
    """Return a number's digits as an integer, 25 for 0.25; 1 for what is no number."""
    if not isinstance(multiple, int | float) or isinstance(multiple, bool):
        return 1
    digits = Decimal(str(multiple)).normalize().as_tuple().digits
    return max(int("".join(map(str, digits))), 1)
