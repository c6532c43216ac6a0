"""Schemas are passed on whole, refused by name, or relieved of what cannot be enforced."""

import json
from typing import Any

import pytest

from gateway.backends.json_schema import MAX_SCHEMA_BYTES, lenient_schema, strict_schema
from gateway.errors import BadRequest

FIELD = "response_format.json_schema.schema"


def nested(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, schema]}}}


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "array", "items": [{"type": "integer"}]}, "items"),
        ({"type": "array", "prefixItems": [True], "additionalItems": False}, "additionalItems"),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, "exclusiveMinimum"),
        ({"type": "number", "exclusiveMaximum": False}, "exclusiveMaximum"),
        ({"type": "object", "minProperties": 2}, "minProperties"),
        ({"$recursiveRef": "#"}, "$recursiveRef"),
        ({"type": "integer", "multipleOf": 99_999_989}, "multipleOf"),
        ({"type": "number", "multipleOf": 0.1234567}, "multipleOf"),
    ],
)
def test_schema_is_refused_when_a_keyword_would_be_dropped(schema: Any, keyword: str) -> None:
    """The refusal names the keyword and the field, at any depth; a lenient reading drops it."""
    for whole in (schema, nested(schema)):
        with pytest.raises(BadRequest) as caught:
            strict_schema(whole, FIELD)
        assert keyword in caught.value.message
        assert caught.value.param == FIELD
        assert json.dumps(keyword) not in lenient_schema(whole, FIELD)


def test_multiples_are_refused_when_they_are_too_many_together() -> None:
    """What is cheap alone may be hours of work in combination."""
    one = {"type": "integer", "multipleOf": 997}
    strict_schema(one, FIELD)
    with pytest.raises(BadRequest, match="multipleOf"):
        strict_schema({"allOf": [one, {"multipleOf": 991}]}, FIELD)


def test_property_is_kept_when_it_is_named_like_a_keyword() -> None:
    """Names of properties are no keywords."""
    schema = {
        "type": "object",
        "properties": {"additionalItems": {"type": "string"}, "format": {"type": "string"}},
    }
    assert set(json.loads(strict_schema(schema, FIELD))["properties"]) == {
        "additionalItems",
        "format",
    }


@pytest.mark.parametrize("schema", [7, "x", [], None, False])
def test_schema_is_refused_when_it_is_no_object(schema: Any) -> None:
    """One clear error instead of a guess."""
    with pytest.raises(BadRequest) as caught:
        strict_schema(schema, FIELD)
    assert caught.value.param == FIELD


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": 1}, "required": [{}], "minProperties": "x"},
        {"properties": 3, "items": "x", "anyOf": {}, "$defs": [], "multipleOf": "3"},
        {"format": ["uri"], "multipleOf": True, "required": None, "minProperties": 1.5},
    ],
)
def test_nothing_breaks_when_keywords_have_odd_values(schema: Any) -> None:
    """What makes no sense is for the engine to refuse."""
    assert json.loads(strict_schema(schema, FIELD))
    assert json.loads(lenient_schema(schema, FIELD))


def test_object_is_closed_when_it_lists_its_properties() -> None:
    """Open objects stay open where the schema says so, lists nothing, or is put together."""
    listed = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert json.loads(strict_schema(listed, FIELD))["additionalProperties"] is False
    for open_ in (
        {**listed, "additionalProperties": True},
        {**listed, "required": ["a", "b"]},
        {"type": "object"},
        {**listed, "anyOf": [{"properties": {"b": {}}}]},
        {"allOf": [listed, {"properties": {"b": {}}}]},
        {"$ref": "#/$defs/x", "properties": {"b": {}}, "$defs": {"x": listed}},
    ):
        assert '"additionalProperties":false' not in strict_schema(open_, FIELD)


def test_schema_is_refused_when_it_is_huge() -> None:
    """Nobody compiles megabytes for a stranger."""
    with pytest.raises(BadRequest, match="larger"):
        lenient_schema({"enum": ["x" * MAX_SCHEMA_BYTES]}, FIELD)


def test_request_is_left_alone_when_its_schema_is_prepared() -> None:
    """The body is also the cache key; nobody may write to it."""
    schema = {"type": "string", "format": "password", "x-guidance": {"lenient": True}}
    before = json.dumps(schema)
    prepared = json.loads(strict_schema(schema, FIELD))
    assert json.dumps(schema) == before
    assert "format" not in prepared
    assert prepared.get("x-guidance", {}).get("lenient") is not True
