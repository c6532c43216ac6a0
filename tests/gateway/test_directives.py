"""What callers tell the caches by headers and by the ``strata`` field."""

from typing import Any

import pytest

from gateway.errors import BadRequest
from gateway.wire.directives import StrataField, read_directives
from semantic_layer import CacheControl

INTENTS = ("factual", "code")


def control(headers: dict[str, str], field: StrataField | None = None) -> CacheControl:
    return read_directives(headers, field, INTENTS).control


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("no-cache", {"no_cache": True}),
        ("No-Store", {"no_store": True}),
        ("no-cache, no-store", {"no_cache": True, "no_store": True}),
        ("no-cache,no-store", {"no_cache": True, "no_store": True}),
        ("max-age=30", {"max_age_s": 30.0}),
        ('max-age="30"', {"max_age_s": 30.0}),
        ("max-age=0", {"max_age_s": 0.0}),
        ("only-if-cached", {"only_if_cached": True}),
        ("private, max-stale=5, stale-if-error", {}),
        ("", {}),
    ],
)
def test_cache_control_is_read_when_it_follows_http(value: str, expected: dict[str, Any]) -> None:
    """Directives are case-insensitive, and unknown ones are ignored (RFC 9111)."""
    assert control({"cache-control": value}) == CacheControl(**expected)


def test_headers_are_read_when_all_are_given() -> None:
    """Each header of the contract reaches the caches."""
    directives = read_directives(
        {
            "x-strata-ttl": "60",
            "x-strata-namespace": "blue",
            "x-strata-tags": "a, b,,a",
            "x-strata-threshold": "0.99",
            "x-strata-intent": "code",
            "x-strata-semantic": "OFF",
        },
        None,
        INTENTS,
    )
    assert directives.namespace == "blue"
    assert directives.control == CacheControl(
        ttl_s=60.0, tags=("a", "b"), threshold=0.99, intent="code", semantic=False
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cache-control", "max-age=soon"),
        ("cache-control", "max-age=-1"),
        ("cache-control", "max-age"),
        ("x-strata-ttl", "0"),
        ("x-strata-ttl", "1.5"),
        ("x-strata-ttl", "9999999999"),
        ("x-strata-ttl", "²"),
        ("x-strata-namespace", ""),
        ("x-strata-namespace", "n" * 129),
        ("x-strata-tags", "t" * 129),
        ("x-strata-tags", ",".join(f"t{n}" for n in range(65))),
        ("x-strata-threshold", "1.01"),
        ("x-strata-threshold", "nan"),
        ("x-strata-threshold", "high"),
        ("x-strata-intent", "poetry"),
        ("x-strata-semantic", "maybe"),
    ],
)
def test_header_is_named_when_it_is_malformed(name: str, value: str) -> None:
    """A malformed header is a 400, not silently something else."""
    with pytest.raises(BadRequest) as caught:
        control({name: value})
    assert caught.value.param == name
    assert name in caught.value.message


def test_known_intents_are_listed_when_one_is_unknown() -> None:
    """The message says what would be right."""
    with pytest.raises(BadRequest, match="code, factual"):
        control({"x-strata-intent": "poetry"})


def test_header_wins_when_the_field_says_otherwise() -> None:
    """Headers beat the body field; tags of both count."""
    field = StrataField(query="q", context=["d"], tags=["b", "c"], namespace="red", ttl=5)
    headers = {"x-strata-ttl": "60", "x-strata-namespace": "blue", "x-strata-tags": "a,b"}
    directives = read_directives(headers, field, INTENTS)
    assert directives.namespace == "blue"
    assert directives.control == CacheControl(
        ttl_s=60.0, tags=("a", "b", "c"), query_text="q", context=("d",)
    )


def test_field_counts_when_no_header_is_given() -> None:
    """An SDK can say everything in its extra body."""
    directives = read_directives({}, StrataField(namespace="red", ttl=0.5, context=[]), INTENTS)
    assert directives.namespace == "red"
    assert directives.control == CacheControl(ttl_s=0.5, context=())
